"""Templates of HTML pages: whatever is put into one is text, and shows as what it is.

It is escaped, and characters that would not show, or would turn the reading of a line around, are
spelled out: names of users, machines and jobs are the words of strangers. What came out of a
template is HTML already, and stays as it is.
"""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


class Templates:
    """The files in the folder ``templates`` of a package.

    Args:
        package: its name, with dots.
    """

    def __init__(self, package: str) -> None:
        self._environment = Environment(
            loader=PackageLoader(package),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def whole(self, file: str, **values: Any) -> str:
        """A file filled in; a value that it names and that is not given is an error."""
        return self._environment.get_template(file).render(values)

    def piece(self, macro: str, *given: Any) -> Markup:
        """What a macro of ``pieces.html`` makes of what it is given."""
        pieces = self._environment.get_template("pieces.html").module
        made: Markup = getattr(pieces, macro)(*given)
        return made


def _shown(value: Any) -> Any:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "".join(c if c.isprintable() or c in "\n\t" else _spelled(c) for c in value)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()
