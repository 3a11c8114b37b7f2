"""The core that follows the site and decides, without disk, network or threads."""
