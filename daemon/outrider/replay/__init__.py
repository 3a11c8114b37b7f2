"""Replay: where the engine and the virtual site meet. Used by the CLI, the twin and `simulated`."""
