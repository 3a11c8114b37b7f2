"""The daemon as a process: starting, supervising its loops, leaving."""
