"""Tests of the shipped unit under a real systemd: PID 1 of a temporary container."""
