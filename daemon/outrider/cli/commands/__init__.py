"""One module a command. What is heavy is imported inside, so that asking for help stays quick."""
