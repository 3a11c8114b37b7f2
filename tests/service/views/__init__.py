"""Reports of the daemon: to the service manager, in the log, and in answers."""
