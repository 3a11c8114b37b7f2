"""Any events in any order: nothing ends the daemon, and its figures stay true."""
