"""Command line of Outrider; each command is imported when it is used, which keeps help quick."""
