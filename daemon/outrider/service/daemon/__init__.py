"""The daemon as a whole: its sources and levers, its state, and what it shows of itself."""
