"""Log readers: parse text that a batch system wrote into events."""
