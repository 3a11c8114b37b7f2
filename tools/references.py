"""Lint of broken references to modules and files in prose: `python -m tools.references`.

It checks comments and docstrings of Python, comments of shell, TOML and make, and every page of
prose for
- dotted names below the import packages: `outrider.model.jobs.Job` must be a module, a top-level
  name of one, or a name in a class there;
- paths that begin with a folder of the repository: `docs/reference/http.md`, `bench/*.py`;
- names of Python and shell files, alone or with the end of their path: `accounting/report.py`.

Nothing is imported, so it also works in the middle of a move. Each line of its output contains the
place, the missing name, and similar names that exist.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tools.module_names import Given, names_in

REPOSITORY: Final = Path(__file__).resolve().parent.parent
SOURCE_ROOTS: Final = ("daemon", "adapters", "policies", "lab")
PACKAGES: Final = ("outrider", "outrider_adapters", "outrider_policies", "outrider_lab")
_SKIPPED: Final = {"build", "dist", "node_modules", "__pycache__"}
_LIKE_SHELL: Final = {".sh", ".toml", ".yml", ".cfg", ""}

# `outrider.toml` is a file, `outrider.adapters` a group of entry points, `outrider.example` a host.
_NO_MODULE: Final = re.compile(
    r"outrider\.(toml|rules\w*|\w+_test|example|conf|log|service\.d|slice"
    r"|adapters|readers|policies|estimators|utilities|commands|functions|reproductions)\b"
)
_DOTTED: Final = re.compile(rf"(?<![\w./@:-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+(?![\w/-])")
_FILE: Final = re.compile(r"(?<![\w./<>{}$*-])(?:[\w-]+/)*[\w-]+\.(?:py|sh)(?![\w/])")


_PLACEHOLDER: Final = re.compile(r"\b(NAME|FILE|FOLDER|DIR)\b")


class Broken(NamedTuple):
    """A reference that leads nowhere.

    Attributes:
        place: the file in the repository, and the line.
        name: the reference.
        why: what is missing, and similar names that exist.
    """

    place: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.name}: {self.why}"


def _names_of(file: Path) -> dict[str, Given]:
    """Return the names of a module, including those in its stub file (made on first use)."""
    stub = file.with_suffix(".pyi")
    return names_in(file) | (names_in(stub) if stub.is_file() else {})


class Tree:
    """The files of a repository, and the modules among them.

    Args:
        root: its folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = sorted(_files(root))
        self._paths = [file.relative_to(root).as_posix() for file in self.files]
        self._folders = {path.partition("/")[0] for path in self._paths if "/" in path}
        self.modules = dict(self._modules())

    def broken(self) -> Iterator[Broken]:
        """Yield every broken reference in prose, file by file."""
        tops = "|".join(sorted(map(re.escape, self._folders)))
        path = re.compile(rf"(?<![\w./<>{{}}$*-])(?:{tops})/[\w./*-]*[\w*]")
        for file, name in zip(self.files, self._paths, strict=True):
            for line, text in prose(file):
                place = f"{name}:{line}"
                for found in _DOTTED.finditer(text):
                    if not _NO_MODULE.match(found[0]) and (why := self._no_module(found[0])):
                        yield Broken(place, found[0], why)
                for found in path.finditer(text):
                    if why := self._no_path(found[0]):
                        yield Broken(place, found[0], why)
                for found in _FILE.finditer(text):
                    if not path.match(found[0]) and (why := self._no_file(found[0])):
                        yield Broken(place, found[0], why)

    def _modules(self) -> Iterator[tuple[str, Path]]:
        for root in SOURCE_ROOTS:
            for file in (self.root / root).rglob("*.py"):
                parts = file.relative_to(self.root / root).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__"), file

    def _no_module(self, dotted: str) -> str:
        """Return why a dotted name does not exist; empty if it does."""
        words = dotted.split(".")
        cut = next((n for n in range(len(words), 0, -1) if ".".join(words[:n]) in self.modules), 0)
        rest = words[cut:]
        if not cut:
            return f"there is no package {words[0]}"
        if not rest:
            return ""
        module = ".".join(words[:cut])
        given = _names_of(self.modules[module])
        if rest[0] not in given:
            what = "module" if self.modules[module].name == "__init__.py" else "name"
            return f"no {what} {rest[0]} in {module}{self._instead(rest[-1])}"
        origin = given[rest[0]].imported_from
        if origin is not None and len(rest) > 1:
            return self._no_module(".".join([origin, *rest[1:]])) if origin in self else ""
        if len(rest) > 1 and rest[1] not in given[rest[0]].members:
            return f"{module}.{rest[0]} has no {rest[1]}"
        return ""

    def __contains__(self, dotted: str) -> bool:
        """Return True if a name belongs to this repository's packages."""
        return any(dotted.startswith(f"{package}.") for package in PACKAGES)

    def _instead(self, name: str) -> str:
        """Return modules of that name elsewhere, or modules that define it, as text."""
        alike = [module for module in self.modules if module.rpartition(".")[2] == name]
        alike += [
            f"{module}.{name}"
            for module, file in self.modules.items()
            if name in (given := names_in(file)) and given[name].imported_from is None
        ]
        return f"; there is {', '.join(sorted(alike)[:3])}" if alike else ""

    def _no_path(self, path: str) -> str:
        if _PLACEHOLDER.search(path) or any(self.root.glob(path.rstrip("./"))):
            return ""
        return f"there is no such file{self._same_name(path)}"

    def _no_file(self, path: str) -> str:
        if _PLACEHOLDER.search(path) or any(
            f"/{known}".endswith(f"/{path}") for known in self._paths
        ):
            return ""
        return f"no file's path ends so{self._same_name(path)}"

    def _same_name(self, path: str) -> str:
        name = path.rstrip("./").rpartition("/")[2]
        same = [known for known in self._paths if known.rpartition("/")[2] == name]
        return f"; there is {', '.join(same[:3])}" if same else ""


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """Yield lines of prose with their numbers: comments, docstrings, pages."""
    if file.suffix == ".py":
        yield from _python_prose(file.read_text(encoding="utf-8"))
    elif file.suffix in {".md", *_LIKE_SHELL}:
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            yield number, line if file.suffix == ".md" else line.partition("#")[2]


def _python_prose(text: str) -> Iterator[tuple[int, str]]:
    lines = text.splitlines()
    for node in _statements(ast.parse(text)):
        # Docstrings, also of attributes: string expressions that are statements.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield line, lines[line - 1]
    if "#" not in text:
        return  # no comment: skip tokenizing, the slowest step
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a block, without its expressions."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for statement in getattr(block, field, ()):
            yield statement
            yield from _statements(statement)


def _files(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.name.startswith(".") or path.name in _SKIPPED or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


if __name__ == "__main__":
    found = list(Tree(REPOSITORY).broken())
    print("\n".join([*map(str, found), f"{len(found)} broken references"]))
    sys.exit(1 if found else 0)
