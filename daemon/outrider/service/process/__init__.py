"""The daemon process: startup, supervision of its loops, and shutdown."""
