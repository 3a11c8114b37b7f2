"""Execution of commands: changes of the mode of a running daemon, and their evidence."""
