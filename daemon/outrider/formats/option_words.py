"""Words of options, of the command line and of the Python API alike, turned into values."""

from typing import Any

from outrider.model.errors import ConfigurationError


def toml_value(text: str) -> Any:
    """The value a word stands for: as TOML would read it, else a number such as .7, else text."""
    import tomllib  # every command has this module, and few a value

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
    """Split ``name=value``. Raises `ConfigurationError` that shows what would be right."""
    name, equals, value = word.partition("=")
    if not (equals and name and value):
        raise ConfigurationError(f'{option} "{word}": expected {right}')
    return name, value
