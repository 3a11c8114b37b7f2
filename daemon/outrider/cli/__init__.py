"""The command line. Commands are imported when they are used, so that a short answer is quick."""
