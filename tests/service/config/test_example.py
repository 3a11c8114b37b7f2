"""The example configuration where a plugin cannot be shown, and the words of settings."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from outrider.model.errors import MissingPackageError
from outrider.plugins.finding import load_adapter
from outrider.service.demo import example_config
from outrider.service.demo.example_config import example_toml
from outrider.service.web.endpoint import BadQueryError, read_query


def test_an_adapter_whose_package_is_missing_is_named_and_the_others_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(name: str) -> Any:
        if name == "mqtt":
            raise MissingPackageError("mqtt needs aiomqtt: pip install 'outrider[mqtt]'.")
        return load_adapter(name)

    monkeypatch.setattr(example_config, "load_adapter", load)
    shown = example_toml().splitlines()
    place = shown.index(
        "# mqtt needs aiomqtt: pip install 'outrider[mqtt]'. Its settings are then shown here."
    )
    assert shown[place + 1] == ""
    assert "# [adapters.mqtt]" not in shown
    assert "# [adapters.simulated]" in shown[place:], "those after it are shown"
    with pytest.raises(MissingPackageError, match="needs aiomqtt"):
        example_toml(shipped_only=True)


class Query(Struct, frozen=True):
    """The test's query parameters."""

    name: Annotated[str, Meta(max_length=3)] = ""
    limit: Annotated[int, Meta(ge=1, le=9)] = 3
    least: Annotated[float, Meta(ge=0)] = 0.0
    most: float = 1.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("name", "long")], "\"name\" = 'long': expected text"),
        ([("limit", "10")], "\"limit\" = '10': expected a whole number from 1 to 9"),
        ([("least", "-1")], "\"least\" = '-1': expected a number from 0 up"),
        ([("most", "x")], "\"most\" = 'x': expected a number"),
        ([("limit", "2"), ("limit", "3")], "\"limit\" is given twice: '2' and '3'"),
        ([("limits", "2")], 'unknown parameter "limits"; did you mean "limit"?'),
    ],
)
def test_a_wrong_parameter_is_told_with_what_would_be_right(
    given: list[tuple[str, str]], said: str
) -> None:
    with pytest.raises(BadQueryError) as raised:
        read_query(Query, given)
    assert str(raised.value) == said


def test_right_parameters_are_read_and_the_others_keep_their_defaults() -> None:
    assert read_query(Query, [("name", "abc"), ("limit", "9")]) == Query("abc", 9)
