"""The systemd units of the daemon: needs of a configuration, generated files, installed units."""
