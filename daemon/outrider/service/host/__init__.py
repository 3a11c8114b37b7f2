"""Services of the host: threads, private files, the clock, systemd and logs."""
