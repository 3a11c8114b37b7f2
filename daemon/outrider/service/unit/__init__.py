"""The systemd unit of the daemon: what a configuration needs of it, its files, what it allows."""
