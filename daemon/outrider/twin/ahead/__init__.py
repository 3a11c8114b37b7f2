"""The present state of a site run forward with another policy deciding: its expected starts."""
