"""Minimal broker that sends QoS 0 as fast as it is read, and drops nothing itself."""

import socket
import threading
from types import TracebackType
from typing import Self

_CONNECT, _SUBSCRIBE = 0x10, 0x80
_CONNACK = b"\x20\x02\x00\x00"


def packet(topic: str, payload: bytes) -> bytes:
    """Return a publication of QoS 0; together shorter than 16 KiB."""
    name = topic.encode()
    body = len(name).to_bytes(2, "big") + name + payload
    length = len(body)
    sized = bytes([length]) if length < 128 else bytes([length % 128 | 128, length // 128])
    return b"\x30" + sized + body


class RawBroker:
    """Serves one client; what it pours out is said before.

    Args:
        flood: packets, sent one after the other once the client has subscribed.
        answer: to a connection; the default lets everybody in.
    """

    def __init__(self, flood: bytes = b"", answer: bytes = _CONNACK) -> None:
        self._flood = flood
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            with client:
                try:
                    self._talk(client)
                except OSError:
                    continue

    def _talk(self, client: socket.socket) -> None:
        while data := client.recv(65_536):
            kind = data[0] & 0xF0
            if kind == _CONNECT:
                client.sendall(self._answer)
            elif kind == _SUBSCRIBE:
                topics = sum(data.count(end) for end in (b"#\x01", b"R\x00"))
                client.sendall(b"\x90" + bytes([2 + topics]) + data[2:4] + bytes(topics))
                client.sendall(self._flood)
