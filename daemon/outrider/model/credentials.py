"""Files that systemd hands to a service alone: ``LoadCredential=`` and where they are then.

Source: systemd.exec(5), "Credentials". Their folder is known to the service only, by an environment
variable; so settings that name a file may begin with that variable.
"""

import os
from pathlib import Path
from typing import Final

from outrider.model.errors import ConfigurationError

VARIABLE: Final = "CREDENTIALS_DIRECTORY"
_BEGINNINGS: Final = (f"${VARIABLE}/", f"${{{VARIABLE}}}/")


def is_credential(setting: str) -> bool:
    """Return whether a setting names a credential: begins with ``$CREDENTIALS_DIRECTORY/``."""
    return setting.startswith(_BEGINNINGS)


def file_of(setting: str) -> Path:
    """The file that a setting names.

    Raises:
        ConfigurationError: it names a credential, and nobody has handed us any.
    """
    for beginning in _BEGINNINGS:
        if setting.startswith(beginning):
            folder = os.environ.get(VARIABLE)
            if not folder:
                raise ConfigurationError(
                    f'"{setting}": ${VARIABLE} is not set; expected a service that systemd '
                    "starts with LoadCredential=, or the path of a file"
                )
            return Path(folder) / setting.removeprefix(beginning)
    return Path(setting)
