"""The prose promises only what is there: links, files, commands, configurations, examples."""

import doctest
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from outrider.cli.root import LazyGroup
from outrider.model import events
from outrider.plugins.finding import ADAPTERS, find
from outrider.service.config.loaded import check_config
from tests.docs.pages import REPOSITORY, Block, anchors, blocks, links, name_of, pages, spans

ROOTS = (
    "adapters",
    "bench",
    "daemon",
    "dashboards",
    "docs",
    "examples",
    "policies",
    "systemd",
    "tests",
    "tools",
)
IN_MIDDLE = re.compile(r"(?<![\w/.-])(?<!-u )outrider ((?:[a-z][\w-]*|--?[a-z][\w-]*)[^|&;>#\n]*)")
PAGES = pytest.mark.parametrize("page", pages(), ids=name_of)


def of_all_pages(*languages: str) -> list[Block]:
    return [block for page in pages() for block in blocks(page, *languages)]


@PAGES
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        if re.match(r"[a-z]+:", target):
            continue  # the network is not asked
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)}: the link to {target} leads nowhere"
        assert file.is_relative_to(REPOSITORY), f"{name_of(page)}: {target} leads outside"
        if anchor:
            assert anchor in anchors(file), f"{name_of(page)}: no heading for {target}"


@PAGES
def test_every_file_named_is_there(page: Path) -> None:
    for word in spans(page):
        first, slash, _ = word.partition("/")
        if slash and first in ROOTS and re.fullmatch(r"[\w./*-]+", word):
            found = list(REPOSITORY.glob(word.rstrip("/")))
            assert found, f"{name_of(page)}: there is no {word}"


@pytest.mark.parametrize("block", of_all_pages("toml"), ids=lambda block: block.place)
def test_every_toml_block_is_toml(block: Block) -> None:
    assert tomllib.loads(block.text)


@pytest.mark.skipif(
    "logtail" not in find(ADAPTERS),
    reason="outrider is not installed here, so its plugins are not found: pip install -e .",
)
@pytest.mark.parametrize(
    "block",
    [b for b in of_all_pages("toml") if b.text.startswith("# outrider.toml")],
    ids=lambda block: block.place,
)
def test_every_configuration_is_accepted(block: Block) -> None:
    loaded = check_config(tomllib.loads(block.text), block.place)
    assert loaded.config.adapters


@pytest.mark.parametrize("block", of_all_pages("python"), ids=lambda block: block.place)
def test_python_is_run_or_stands_in_the_file_it_names(block: Block) -> None:
    if ">>>" in block.text:
        parsed = doctest.DocTestParser().get_doctest(block.text, {}, block.place, block.place, 0)
        assert doctest.DocTestRunner().run(parsed).failed == 0, block.place
        return
    head, _, body = block.text.partition("\n")
    assert head.startswith("# "), f"{block.place}: neither a doctest nor a piece of a named file"
    source = REPOSITORY / head.removeprefix("# ").strip()
    assert source.is_file(), f"{block.place}: there is no {head.removeprefix('# ')}"
    assert body.strip() in source.read_text(encoding="utf-8"), f"{block.place} is not in {source}"


def commands_of(page: Path) -> Iterator[tuple[str, str]]:
    """Calls of outrider in shell blocks and in sentences, as (place, words after outrider)."""
    for block in [*blocks(page, "sh", "shell", "bash"), *indented_calls(page)]:
        for line in block.text.splitlines():
            for call in IN_MIDDLE.finditer(line.strip()):
                yield block.place, call[1]
    for span in spans(page):
        if span.startswith("outrider "):
            yield name_of(page), span.removeprefix("outrider ")


def indented_calls(page: Path) -> Iterator[Block]:
    """Lines of indented blocks that call outrider."""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("    outrider "):
            yield Block(f"{name_of(page)}:{number}", "sh", line)


def options_of(command: click.Command, context: click.Context) -> set[str]:
    """Return the options of a command, or of all commands of a group."""
    known = {name for option in command.params for name in [*option.opts, *option.secondary_opts]}
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            known |= options_of(inner, context) if inner is not None else set()
        for inner in command.commands.values():
            known |= options_of(inner, context)
    return known


@PAGES
def test_every_command_and_option_promised_exists(page: Path) -> None:
    top = LazyGroup("outrider")
    context = click.Context(top, info_name="outrider")
    for place, call in commands_of(page):
        words = shlex.split(call.replace("...", ""))
        command: click.Command = top
        while words and isinstance(command, click.Group) and re.match("[a-z]", words[0]):
            found = command.get_command(context, words[0])
            if found is None and command is not top:
                break  # a group that also takes an argument of its own
            assert found is not None, f"{place}: `outrider {call}`: no command {words[0]!r}"
            command = found
            words = words[1:]
        if command is top:
            continue  # options of outrider itself, such as --version
        known = options_of(command, context)
        for word in words:
            option = word.partition("=")[0]
            if option.startswith("--"):
                assert option in known, f"{place}: `outrider {call}`: no option {option}"


def test_the_definitions_name_every_reason_of_an_eviction() -> None:
    text = (REPOSITORY / "docs/reference/definitions.md").read_text(encoding="utf-8")
    missing = [reason for reason in events.EVICTION_REASONS if f"`{reason}`" not in text]
    assert not missing


def test_every_decision_record_has_its_number_date_and_three_parts() -> None:
    found = (REPOSITORY / "docs/decisions").glob("*.md")
    records = sorted(record for record in found if record.name != "index.md")
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    for record in records:
        text = record.read_text(encoding="utf-8")
        assert text.startswith(f"# {record.name[:4]} "), record.name
        assert re.search(r"^\d{4}-\d\d-\d\d, \w+", text, re.MULTILINE), record.name
        for part in ("Context", "Choice", "What would change our mind"):
            assert f"## {part}\n" in text, f"{record.name} has no part {part!r}"
        assert len(text.splitlines()) <= 60, f"{record.name} is longer than a page"


def test_the_changelog_tells_of_the_present_version() -> None:
    from outrider import __version__

    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{__version__}]" in text
