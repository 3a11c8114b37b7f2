"""The environment of Gymnasium: it is a replay, its rewards are figures, what it trains runs."""
