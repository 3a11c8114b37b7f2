"""Exit codes of the command line, as the reference page lists them."""

DONE = 0
NO = 1
BAD_USE = 2
PEER_AWAY = 3
OWN_FAULT = 70
INTERRUPTED = 130
READER_GONE = 141
