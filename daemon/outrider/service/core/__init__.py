"""The part of the daemon that follows the site and decides: no disk, no network, no thread."""
