"""Pages of docs/reference, made from the declarations and the help that they describe."""
