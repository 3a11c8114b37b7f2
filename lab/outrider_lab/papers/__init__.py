"""One package for each paper whose experiments are run again."""
