"""What the daemon asks of its machine: threads, private files, the clock, systemd, logs."""
