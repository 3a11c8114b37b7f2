"""Named streams of chance: one seed, and no stream changes when another is added or used."""

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """The generator of a name under a seed; the same in every process on every machine."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
