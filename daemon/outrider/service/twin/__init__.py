"""The shadow twin's separate process, and the files in which it writes its results."""
