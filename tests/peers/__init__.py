"""The real programs that Outrider is tested against, and how to come by them (`make peers`)."""
