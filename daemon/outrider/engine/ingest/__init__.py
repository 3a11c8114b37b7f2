"""From what sources say to events: in the order of time, numbered, without duplicates or gaps."""
