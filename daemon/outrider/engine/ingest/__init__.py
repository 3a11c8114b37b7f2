"""From what sources say to events: merged by time, named by number, told once, gaps mended."""
