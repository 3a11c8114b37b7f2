"""The configuration of the daemon: declared, read, checked whole, described."""
