"""The shadow twin beside the daemon: a process that asks it, and the file in which it answers."""
