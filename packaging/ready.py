"""Whether the daemon of a configuration is ready, for a container's health check: 0 yes, 1 no.

`python ready.py FILE` asks `/readyz` where the configuration says that the daemon listens.
"""

import http.client
import socket
import ssl
import sys
from pathlib import Path
from typing import Final

from outrider.service.config.declarations import Config, listen_address
from outrider.service.config.loaded import load_config

_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up, not bound
_WITHIN_S: Final = 8.0


def answer(config: Config) -> tuple[int, str]:
    """Status and body of ``/readyz``.

    Raises:
        OSError: nobody answers.
        http.client.HTTPException: whoever answers does not speak HTTP.
    """
    host, port = listen_address(config)
    host = _EVERYWHERE.get(host, host)
    if config.tls_cert is None:
        asked = http.client.HTTPConnection(host, port, timeout=_WITHIN_S)
    else:
        # It asks itself, and sends nothing secret: whose name the certificate has is no matter.
        context = ssl._create_unverified_context()  # noqa: S323
        asked = http.client.HTTPSConnection(host, port, timeout=_WITHIN_S, context=context)
    try:
        asked.request("GET", "/readyz", headers={"Host": f"localhost:{port}"})
        told = asked.getresponse()
        return told.status, told.read(10_000).decode(errors="replace")
    finally:
        asked.close()


def main() -> int:
    """Ask, and print what is answered."""
    try:
        status, body = answer(load_config(Path(sys.argv[1])).config)
    except (OSError, socket.gaierror, http.client.HTTPException) as error:
        print(f"not ready: {error}")
        return 1
    print(body)
    return 0 if status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())
