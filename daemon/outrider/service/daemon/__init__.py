"""The daemon as a whole: its sources, levers, state and views."""
