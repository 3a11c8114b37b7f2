"""The configuration as it is declared, read and refused."""
