"""What the daemon needs on a host, examined piece by piece."""
