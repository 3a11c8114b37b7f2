"""The daemon: what surrounds the engine with sockets, signals, a clock and a service manager."""
