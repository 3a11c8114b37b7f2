"""The daemon's use of the journal: recording, snapshots and restarts."""
