"""Replay: runs the engine on a simulated or recorded site, for the CLI and `simulated`."""
