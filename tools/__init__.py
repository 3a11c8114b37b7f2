"""Development tools, which are not installed: set-up, lint and generated files."""
