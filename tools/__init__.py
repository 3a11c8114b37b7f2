"""What the repository needs and the installed product does not: set-up, generated files."""
