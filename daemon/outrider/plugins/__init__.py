"""Plugin discovery by entry points, and construction from names and settings."""
