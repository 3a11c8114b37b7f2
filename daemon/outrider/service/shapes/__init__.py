"""Shapes of answers: the Structs that views, endpoints, messages and the command line share."""
