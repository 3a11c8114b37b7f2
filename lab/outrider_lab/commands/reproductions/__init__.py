"""One module a paper: its ``outrider reproduce`` command."""
