"""Campus folders: a site, its machines, the sessions of their owners, and jobs."""
