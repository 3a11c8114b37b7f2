"""Carrying commands out: what changes the mode of a running daemon, and on what evidence."""
