"""Asking the running daemon, over HTTP, with nothing but the standard library."""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from outrider.model.errors import ConfigurationError, PeerError

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig

DEFAULT_URL: Final = "http://127.0.0.1:9690"
TIMEOUT_S: Final = 5.0
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up, not bound


class DaemonAddress(NamedTuple):
    """Where a daemon answers, and what it asks of its clients.

    Attributes:
        url: scheme, host and port.
        token: sent as Bearer, or None.
        certificate: PEM file whose certificate is trusted beside the system's, or None.
    """

    url: str = DEFAULT_URL
    token: str | None = None
    certificate: str | None = None

    @classmethod
    def configured(cls, loaded: "LoadedConfig") -> "DaemonAddress":
        """Where a daemon with this configuration listens.

        Raises:
            ConfigurationError: it takes any free port, or its token cannot be read.
        """
        from outrider.service.config.declarations import listen_address

        config = loaded.config
        host, port = listen_address(config)
        if port == 0:
            raise ConfigurationError(
                f'{loaded.source}: "listen" = "{config.listen}" takes any free port; '
                "give the daemon's address with --url"
            )
        host = _EVERYWHERE.get(host, host)
        scheme = "https" if config.tls_cert else "http"
        token = None
        if config.token_file is not None:
            from outrider.service.web.auth import read_token

            token = read_token(Path(config.token_file))
        place = f"[{host}]" if ":" in host else host
        return cls(f"{scheme}://{place}:{port}", token, config.tls_cert)

    def ask(self, path: str) -> dict[str, Any]:
        """What the daemon answers.

        Args:
            path: under the address, its parts quoted.

        Raises:
            UnknownJobError: the daemon does not know what was asked for.
            PeerError: it cannot be reached, does not answer in time, or not as a daemon would.
            ConfigurationError: the address is none.
        """
        status, body = self._get(path)
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise PeerError(f"{self.url}{path}: answers, but not as Outrider would") from error
        if not isinstance(answer, dict):
            raise PeerError(f"{self.url}{path}: answers, but not as Outrider would")
        if status in (300, 404) and "error" in answer:
            raise UnknownJobError(str(answer["error"]), answer.get("candidates", []))
        if status != 200:
            raise PeerError(f"{self.url}{path}: answered {status}: {answer.get('error', '')}")
        return answer

    def _get(self, path: str) -> tuple[int, bytes]:
        if not _is_address(self.url):
            raise ConfigurationError(f'--url "{self.url}": right would be one like {DEFAULT_URL}')
        headers = {"Accept": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            place = f"{self.url.rstrip('/')}{path}"
            request = urllib.request.Request(place, headers=headers)  # noqa: S310 - seen above
            with self._opener().open(request, timeout=TIMEOUT_S) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise PeerError(
                f"{self.url}: no daemon answers: {reason}; start one with `outrider run`, or name "
                "another address with --url or --config"
            ) from error

    def _opener(self) -> urllib.request.OpenerDirector:
        context = ssl.create_default_context()
        if self.certificate is not None:
            context.load_verify_locations(self.certificate)
        # A proxy for the wide world has no business with a daemon next door.
        return urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # no host, or no port, by any reading
        return False


class UnknownJobError(PeerError):
    """The daemon answers, and cannot say which job is meant.

    Attributes:
        candidates: names of the jobs that it may be; none where it knows of no such job.
    """

    exit_code = 1

    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates = list(candidates)


def explain_path(job: str) -> str:
    """The path that explains a job, whatever its name is made of."""
    return f"/api/v1/explain/{quote(job, safe='')}"
