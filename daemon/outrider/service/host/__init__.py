"""What the daemon asks of the machine it runs on: threads, private files, the clock, systemd, logs."""
