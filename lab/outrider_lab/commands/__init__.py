"""The lab's commands, found by the entry points ``outrider.commands``."""
