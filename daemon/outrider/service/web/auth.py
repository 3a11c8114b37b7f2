"""Authentication: with a token configured, only clients that send it may read."""

import base64
import binascii
import hmac
from pathlib import Path
from typing import Final

from outrider.model.errors import ConfigurationError

CHALLENGES: Final = ('Bearer realm="outrider"', 'Basic realm="outrider", charset="UTF-8"')
"""What a refused client is told to send. Basic lets a browser ask its user for the token."""

SHORTEST_TOKEN: Final = 16


def read_token(path: Path) -> str:
    """The token in a file, without the white space around it.

    Raises:
        ConfigurationError: the file cannot be read, or what it holds is no good token.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigurationError(
            f'"token_file" = "{path}": cannot be read: {error.strerror}'
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f'"token_file" = "{path}": only ASCII would be right') from error
    if len(token) < SHORTEST_TOKEN or len(token.split()) != 1:
        raise ConfigurationError(  # never shows the value: a token belongs in no log
            f'"token_file" = "{path}": one word of {SHORTEST_TOKEN} characters or more would be '
            "right, such as `openssl rand -hex 32` prints"
        )
    return token


def is_allowed(authorization: str, token: str) -> bool:
    """Whether an Authorization header carries the token.

    As ``Bearer TOKEN``, or as the password of ``Basic``, whoever the user. The time this takes
    does not depend on how much of the token is right.
    """
    scheme, _, credentials = authorization.partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "basic":
        credentials = _password(credentials)
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(
        credentials.encode(errors="surrogateescape"), token.encode(errors="surrogateescape")
    )


def _password(credentials: str) -> str:
    try:
        pair = base64.b64decode(credentials, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
    return pair.partition(":")[2]
