"""The shadow twin: what would have been, what will be, and until when jobs wait."""
