"""The daemon around the engine: sockets, signals, a clock and the service manager."""
