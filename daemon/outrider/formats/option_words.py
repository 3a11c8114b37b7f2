"""Parser of option values, for the command line and the Python API."""

from typing import Any

from outrider.model.errors import ConfigurationError


def toml_value(text: str) -> Any:
    """Return the value of an option word: TOML, else a number such as .7, else text."""
    import tomllib  # every command imports this module, few parse a value

    if "\n" not in text and "\r" not in text:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    try:
        return float(text)
    except ValueError:
        return text


def split_pair(option: str, word: str, right: str) -> tuple[str, str]:
    """Split a pair ``name=value``. Raises `ConfigurationError` that shows the expected form."""
    name, equals, value = word.partition("=")
    if not (equals and name and value):
        raise ConfigurationError(f'{option} "{word}": expected {right}')
    return name, value
