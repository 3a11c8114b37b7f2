"""Finding plugins by entry points, and making them of names and settings."""
