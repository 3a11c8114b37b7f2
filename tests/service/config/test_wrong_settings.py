"""Every declared setting, given wrongly: the error says file, line, table, key, value, remedy."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import pytest

from outrider.cli.options import settings_by_policy
from outrider.model.errors import MissingPackageError, OutriderError
from outrider.model.settings import toml_text, unwrapped
from outrider.model.utility import SHAPES
from outrider.plugins.finding import ADAPTERS, POLICIES, find, load_adapter, load_policy
from outrider.replay.trials import Terms
from outrider.service.config.declarations import ClusterSettings, Config
from outrider.service.config.loaded import load_config
from outrider.service.config.optional_tables import ActingSettings, PublishSettings, TwinSettings

FOREIGN = re.compile(
    r"msgspec|Expected|`\w+`|Traceback|NoneType|ValidationError|\$\.|Error:|\binvalid\b"
    r"|\b(str|int|float|bool|dict|tuple|object|array|nan_)\b"
)
"""Words of libraries and of Python, which a person at a site never wrote."""
POOL = {"type": "logtail", "paths": ["/nowhere/EventLog"]}


class Table(NamedTuple):
    """A table of the configuration, its declaration, and what else has to stand in it."""

    keys: tuple[str, ...]
    record: Any
    beside: dict[str, Any]


def tables() -> Iterator[Any]:
    yield Table((), Config, {})
    yield Table(("clusters", "lab one"), ClusterSettings, {})
    yield Table(("acting",), ActingSettings, {})
    yield Table(("mqtt",), PublishSettings, {})
    yield Table(("twin",), TwinSettings, {})
    for name in find(ADAPTERS):
        try:
            load_adapter(name)
        except MissingPackageError as error:
            yield pytest.param(None, id=name, marks=pytest.mark.skip(str(error)))
            continue
        required = {"paths": ["/nowhere/EventLog"]} if name == "logtail" else {}
        yield Table(
            ("adapters", "pool"), load_adapter(name).settings_type, {"type": name} | required
        )
    for name in find(POLICIES):
        yield Table(("policies", name), load_policy(name).settings_type, {})
    for shape, record in SHAPES.items():
        yield Table(("utilities", "batch"), record, {"shape": shape})


class Case(NamedTuple):
    """A setting with a wrong value; `entry`: inside of it."""

    key: str
    hint: Any
    value: Any


def wrong_values(hint: Any) -> Iterator[Any]:
    """Yield values of a wrong type, and values just beyond each declared bound."""
    plain, metas = unwrapped(hint)
    origin = get_origin(plain)
    if plain is not Any and plain is not str:
        yield from ("much", "")
    if plain is not bool:
        yield True
    if plain in (str, bool) or origin in (list, tuple, dict):
        yield 7
    if plain in (int, float):
        yield 1.5 if plain is int else float("nan")
    if origin is Literal:
        word = get_args(plain)[0]
        yield f"{word[:-1]}x" if isinstance(word, str) else word + 1
    if origin in (list, tuple):
        yield from ([True], {"a": 1})
    for meta in metas:
        yield from beyond(meta, plain)


def beyond(meta: msgspec.Meta, plain: Any) -> Iterator[Any]:
    """Values just out of the bounds of a declaration."""
    for bound, step in ((meta.ge, -1), (meta.gt, 0), (meta.le, 1), (meta.lt, 0)):
        if bound is not None:
            yield bound + step
    if meta.min_length:
        yield "" if plain is str else []
    if meta.max_length:
        yield "x" * (meta.max_length + 1)


def cases(record: Any) -> Iterator[Case]:
    hints = get_type_hints(record, include_extras=True)
    for field in msgspec.structs.fields(record):
        for value in wrong_values(hints[field.name]):
            yield Case(field.encode_name, hints[field.name], value)


def text_of(keys: tuple[str, ...], values: dict[str, Any]) -> str:
    """Return a configuration with this table; a value of its own line each."""
    lines = [f"{toml_text(key)} = {toml_text(value)}" for key, value in values.items()]
    heading = [f"[{'.'.join(map(toml_text, keys))}]"] if keys else []
    pool = ["[adapters.pool]", *(f"{key} = {toml_text(value)}" for key, value in POOL.items())]
    if keys == ("adapters", "pool") or "adapters" in values:
        pool = []
    whole = [*heading, *lines, *pool]
    return "\n".join(["# a comment", 'mode = "shadow"' if keys else "", *whole, ""])


def refusal(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(OutriderError) as refused:
        load_config(file)
    return str(refused.value)


def faults(message: str, file: Path, text: str, key: str) -> Iterator[str]:
    """Yield the required parts that an error message lacks."""
    if not message.startswith(f"{file}: line "):
        yield "does not begin with file and line"
        return
    number = int(message.removeprefix(f"{file}: line ").split(":")[0].split()[0])
    if key not in text.splitlines()[number - 1]:
        yield f"line {number} does not hold {key}"
    if f'"{key}' not in message:
        yield "does not name the key"
    if foreign := FOREIGN.search(message.removeprefix(str(file))):
        yield f"says {foreign[0]!r}"
    if len(message.splitlines()) != 1:
        yield "has several lines"


TABLES = list(tables())


def table_id(table: Table | None) -> str:
    return f"{'.'.join(table.keys)}-{table.record.__name__}" if table else "missing"


@pytest.mark.parametrize("table", TABLES, ids=table_id)
def test_every_setting_refuses_in_the_words_of_its_reader(table: Table, tmp_path: Path) -> None:
    file, complaints, tried = tmp_path / "site.toml", [], 0
    for case in cases(table.record):
        text = text_of(table.keys, {**table.beside, case.key: case.value})
        message = refusal(file, text)
        found = list(faults(message, file, text, case.key))
        shown = toml_text(case.value)[:60]
        if f"= {shown}" not in message and toml_text([case.value]) not in message:
            inside = case.value[0] if isinstance(case.value, list) and case.value else None
            if inside is None or f"entry 1 = {toml_text(inside)}" not in message:
                found.append(f"does not show {shown}")
        if "expected " not in message:
            found.append("names no remedy")
        found += wrong_example(message, case)
        if table.keys and f" [{'.'.join(table.keys)}]: " not in message:
            found.append("does not name the table")
        complaints += [f"{message!r}: {fault}" for fault in found]
        tried += 1
    assert not complaints, "\n".join(complaints)
    assert tried >= len(msgspec.structs.fields(table.record))


def wrong_example(message: str, case: Case) -> list[str]:
    """Return the faults of a message's example: missing, or not valid itself."""
    _, found, example = message.partition(", as in ")
    plain, _ = unwrapped(case.hint)
    if not found:
        records = (ActingSettings, PublishSettings, TwinSettings)
        table = get_origin(plain) is dict or plain in records
        return [] if table else ["gives no example"]
    value = tomllib.loads(example)[case.key]
    try:
        msgspec.convert(value, case.hint, strict=True)
    except msgspec.ValidationError as error:
        return [f"its example is wrong: {error}"]
    return []


@pytest.mark.parametrize("table", TABLES, ids=table_id)
def test_an_unknown_key_is_named_with_the_nearest_known_one(table: Table, tmp_path: Path) -> None:
    file, complaints = tmp_path / "site.toml", []
    names = [field.encode_name for field in msgspec.structs.fields(table.record)]
    for name in names:
        wrong = f"{name[:-1]}{'q' if name[-1] != 'q' else 'z'}"
        text = text_of(table.keys, {**table.beside, wrong: 1})
        message = refusal(file, text)
        found = list(faults(message, file, text, wrong))
        near = 'did you mean "' in message or all(known in message for known in names)
        if not near:
            found.append("names no known key")
        complaints += [f"{message!r}: {fault}" for fault in found]
    assert not complaints, "\n".join(complaints)


def test_a_value_deep_inside_is_found_and_its_table_named(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    text = (
        '[adapters.pool]\ntype = "mqtt"\n[adapters.pool.meters."tele/+/SENSOR"]\nwatts = 1\n'
        "[shares]\nphysics = 'half'\n"
    )
    message = refusal(file, text)
    assert message == (
        f'{file}: line 6: "shares.physics" = "half": expected a number, as in physics = 1.0'
    )
    message = refusal(file, text.replace("'half'", "1"))
    assert message == (
        f'{file}: line 4 [adapters.pool]: "meters.tele/+/SENSOR.watts" = 1: expected text in '
        'quotes, as in watts = ""'
    )


def test_what_is_missing_is_named_with_an_example(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    message = refusal(file, '\n[adapters.pool]\ntype = "logtail"\n')
    assert message == (
        f'{file}: line 2 [adapters.pool]: "paths" is missing: expected a list of texts, at '
        'least 1, as in paths = ["/var/log/condor/EventLog"]'
    )


@pytest.mark.parametrize(
    ("text", "key", "remedy"),
    [
        ('timezone = "Mars"', "timezone", 'as in timezone = "Europe/Berlin"'),
        ('reboot = "25:00"', "reboot", 'as in reboot = "03:00"'),
        ('listen = "here"', "listen", 'as in listen = "127.0.0.1:9690"'),
        ('listen = "0.0.0.0:9690"', "listen", 'as in listen = "127.0.0.1:9690"'),
        ('estimator = "lerned"', "estimator", 'did you mean "learned"?'),
        ('clusters.lab = {open = "mon 25:00-26:00"}', "open", 'expected "mon-fri'),
        ("shares = {physics = 0.4}", "shares", "expected shares >= 0 that sum to 1"),
        ('utilities.batch = {shape = "stap"}', "shape", 'did you mean "step"?'),
        ("utilities.batch = {slack_s = 3}", "shape", 'as in shape = "step"'),
        ('clusters.lab = {open = "noon"}', "open", 'expected "mon-fri 09:00-17:00"'),
        ('policies.bandit = {preset = "papr"}', "preset", "known: "),
        ("policies.bandit = {preset = 1}", "preset", "known: "),
        ("policies.clairvoyant = {}", "clairvoyant", "expected a policy that learns"),
        ("policies.bandid = {}", "bandid", 'did you mean "bandit"?'),
        ('policies.sarsa = {start = "/nowhere"}', "start", "expected"),
        ('policies.sarsa = {approximator = "linear"}', "start", "expected"),
        (
            'policies.sarsa = {start = "none", training = "descent", approximator = "boosting"}',
            "training",
            "expected",
        ),
        ('policies.bandit = {history_weights = "gaussian"}', "history_weights", "; use "),
        ("policies.fuzzy_td = {first_outputs = [1]}", "first_outputs", "expected"),
        ('mqtt = {password_file = "/p"}', "password_file", "expected"),
        ('mqtt = {key_file = "/p"}', "key_file", "expected"),
        ('mqtt = {ca_file = "/p"}', "ca_file", "expected"),
        ('mqtt = {topic = "a/+"}', "topic", "expected"),
        ('mqtt = {site = "in"}', "site", "expected"),
        ('mqtt = {topic = "/a"}', "topic", "expected"),
        ('adapters.meter = {type = "mqtt", meters = {"tele/#" = {}}}', "tele/#", "expected"),
        (
            'adapters.meter = {type = "mqtt", meters = {"outrider/in/+" = {}}}',
            "outrider/in/+",
            "; use ",
        ),
        ("adapters.site = {type = 'simulated'}", "adapters.site", "expected no other"),
        ("adapters.site = {type = 'logtial'}", "logtial", 'did you mean "logtail"?'),
    ],
)
def test_what_only_its_meaning_refuses_is_told_alike(
    text: str, key: str, remedy: str, tmp_path: Path
) -> None:
    file = tmp_path / "site.toml"
    whole = f"# one\n{text}\n[adapters.pool]\ntype = 'logtail'\npaths = ['/nowhere/EventLog']\n"
    message = refusal(file, whole)
    assert message.startswith(f"{file}: line 2"), message
    assert key in message
    assert remedy in message
    assert not FOREIGN.search(message.removeprefix(str(file))), message


def test_a_file_that_is_no_configuration_says_what_one_is(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    for content in (b"mode = shadow", b"\xff\xfe", b"[a", b"a = " + b"[" * 5000):
        file.write_bytes(content)
        with pytest.raises(OutriderError, match=r"not valid TOML: .*; expected"):
            load_config(file)
    with pytest.raises(OutriderError, match=r"cannot be read: .*expected"):
        load_config(tmp_path)


@pytest.mark.parametrize("name", sorted(find(POLICIES)))
def test_a_wrong_setting_of_a_replay_is_told_alike(name: str) -> None:
    complaints = []
    for case in cases(load_policy(name).settings_type):
        if case.value == "" or isinstance(case.value, (dict, float)):
            continue  # no word of a command line stands for these
        word = f"{name}.{case.key}={toml_text(case.value)}"
        given = settings_by_policy([word], [name])
        with pytest.raises(OutriderError) as refused:
            Terms(given, {name: None}).make(name, 0)
        message = str(refused.value)
        if not message.startswith(f'--set {name}: "{case.key}"') or "expected" not in message:
            complaints.append(message)
        if foreign := FOREIGN.search(message):
            complaints.append(f"{message!r} says {foreign[0]!r}")
    assert not complaints, "\n".join(complaints)
