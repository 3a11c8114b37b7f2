"""The shipped unit under a real systemd: PID 1 of a container that is thrown away afterwards."""
