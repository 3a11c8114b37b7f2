"""The Python API: its figures are those of the command line, and importing it costs nothing."""
