"""The daemon's own journal: recording, snapshots, and going on after a restart."""
