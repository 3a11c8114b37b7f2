"""Lock files of all dependencies with hashes: `python tools/lock.py` or `make lock`.

`locks/NAME.txt` is for plain `pip install --require-hashes --no-deps -r`, for Python 3.11 and newer
on Linux, with environment markers where versions differ. It contains no index: pip uses its
configured one, and rejects a file whose hash is not listed.

The tools come from the extra `supply`, in the environment of the Python that runs this.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parent.parent
LOCKS: Final = REPOSITORY / "locks"
LICENCES: Final = LOCKS / "licences.md"
EVERYTHING: Final = "dev"
PARTS: Final = {
    EVERYTHING: "the project's own dependencies and what tests, lint and generated files need",
    "runtime": "what a site installs, and `make demo`",
    "checkout": "what builds an editable install",
    "docs": "what makes the pages a site",
    "bench": "the simulator beside which `bench/peers.py` measures",
    "broker": "an MQTT broker in the same process",
    "forecast": "what compiles the expected starts",
    "frames": "data frames of what the Python interface returns",
    "gym": "the environment for reinforcement learning",
    "htcondor": "HTCondor's Python library, where it has a wheel",
    "reports": "figures of papers, and Parquet",
    "sweeps": "sweeps on a cluster of one's own",
    "mutation": "what `make check-long` puts faults into the code with",
    "supply": "what makes these files and the bill of materials",
}
"""Locks and their purposes; all others agree with the first on packages that both pin."""
OLDEST: Final = "3.11"
_DIGEST: Final = re.compile(r"^# requirements: (\S+)$", re.MULTILINE)
_SIGNED: Final = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<rest>[^\\]+)", re.MULTILINE)


def project() -> dict[str, Any]:
    """Return the table ``[project]`` of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    own: dict[str, Any] = table["project"]
    return own


def required(part: str, own: dict[str, Any]) -> list[str]:
    """Return the requirements from which a lock is made.

    Args:
        part: a key of `PARTS`.
        own: the table ``[project]``.
    """
    extras = own["optional-dependencies"]
    base = own["dependencies"] if part in (EVERYTHING, "runtime") else []
    return sorted([*base, *extras.get(part, ())])


def digest(requirements: list[str], oldest: str) -> str:
    """Return the digest in a lock's head, which identifies its requirements."""
    text = "\n".join([oldest, *requirements])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_in(text: str) -> str | None:
    """Return the digest in a lock's head, or None."""
    found = _DIGEST.search(text)
    return found[1] if found else None


def pins_in(text: str) -> list[str]:
    """Return a lock's pins as requirements: ``numpy==2.4.6 ; python_version < "3.12"``."""
    return [f"{pin['name']}=={pin['rest'].strip()}" for pin in _SIGNED.finditer(text)]


def lock(part: str, own: dict[str, Any]) -> None:
    """Write one lock; existing pins stay unless the requirements exclude them."""
    requirements = required(part, own)
    file, full = LOCKS / f"{part}.txt", LOCKS / f"{EVERYTHING}.txt"
    agreeing = [] if part == EVERYTHING else ["--constraint", str(full)]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "wanted.in"
        wanted.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        command: list[str | Path] = [
            Path(sys.executable).with_name("uv"), "pip", "compile", wanted, *agreeing,
            "--universal", "--python-version", OLDEST, "--generate-hashes", "--no-header",
            "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--upgrade", "--quiet",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        sys.exit(f"lock {part}: {done.stderr.strip()}")
    head = (
        f"# {PARTS[part][0].upper()}{PARTS[part][1:]}.\n"
        "# Made by `make lock`; pip install --require-hashes --no-deps -r this file.\n"
        f"# requirements: {digest(requirements, OLDEST)}\n"
    )
    file.write_text(head + done.stdout, encoding="utf-8")
    print(
        f"  {file.relative_to(REPOSITORY)}: {len(pins_in(done.stdout))} packages", file=sys.stderr
    )


def bill_of_materials(out: Path) -> dict[str, Any]:
    """Write and return the bill of materials (CycloneDX, JSON) of what a site installs.

    The packages of `locks/runtime.txt` are installed into a separate environment, from which their
    metadata with licences are read.
    """
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        site = Path(folder) / "bin" / "python"
        command: list[str | Path] = [
            python,
            "-m",
            "pip",
            "--python",
            site,
            "install",
            "--quiet",
            "--no-deps",
        ]
        site_lock = ["--require-hashes", "--no-compile", "-r", str(LOCKS / "runtime.txt")]
        subprocess.run([*command, *site_lock], check=True)
        cyclonedx: list[str | Path] = [
            python.with_name("cyclonedx-py"), "environment", "--pyproject",
            REPOSITORY / "pyproject.toml", "--output-reproducible", "--output-file", out, site,
        ]  # fmt: skip
        subprocess.run(cyclonedx, check=True)
    bill: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    bill["metadata"]["component"]["version"] = _own_version()
    out.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
    return bill


def _own_version() -> str:
    """Return the project's version, which is in the package and not in pyproject.toml."""
    text = (REPOSITORY / "daemon/outrider/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)
    if found is None:
        sys.exit("daemon/outrider/__init__.py contains no __version__")
    return found[1]


def licences_page(bill: dict[str, Any]) -> str:
    """Return the page that lists every package that a site installs, with its licence."""
    lines = [
        "# Licences of what Outrider installs",
        "",
        "Made by `make lock` from the metadata of the packages in `locks/runtime.txt`; Outrider",
        "itself is under Apache-2.0 (LICENSE). The page draws with uPlot 1.6.32 (MIT), which lies",
        "beside it with its licence.",
        "",
        "| package | version | licence |",
        "|---|---|---|",
    ]
    for part in sorted(bill["components"], key=lambda part: str(part["name"]).lower()):
        licences = [one.get("expression") or _license(one) for one in part.get("licenses", ())]
        names = ", ".join(dict.fromkeys(filter(None, licences))) or "not declared"
        lines.append(f"| {part['name']} | {part['version']} | {names} |")
    return "\n".join(lines) + "\n"


def _license(entry: dict[str, Any]) -> str:
    licence = entry.get("license", {})
    name = str(licence.get("id") or licence.get("name", "")).partition("\n")[0]
    return name.removeprefix("License :: ").removeprefix("OSI Approved :: ")


def main() -> None:
    """Write all locks and the licences page; with `--bill FILE` only the bill of materials."""
    if sys.argv[1:2] == ["--bill"]:
        out = Path(sys.argv[2])
        out.parent.mkdir(parents=True, exist_ok=True)
        bill_of_materials(out)
        return
    LOCKS.mkdir(exist_ok=True)
    own = project()
    for part in PARTS:
        lock(part, own)
    with tempfile.TemporaryDirectory() as folder:
        bill = bill_of_materials(Path(folder) / "bill.json")
    LICENCES.write_text(licences_page(bill), encoding="utf-8")


if __name__ == "__main__":
    main()
