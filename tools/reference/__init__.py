"""Generated pages of docs/reference, from the declarations and help that they describe."""
