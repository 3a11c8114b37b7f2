"""Certificates that sign themselves, made by openssl."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest


class Pair(NamedTuple):
    """PEM files of a certificate and its key."""

    cert: Path
    key: Path


def self_signed(folder: Path, names: str = "DNS:localhost,IP:127.0.0.1", days: int = 2) -> Pair:
    """A certificate for these names; one of -1 days has expired yesterday."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on the PATH to make a certificate with")
    folder.mkdir(exist_ok=True)
    pair = Pair(folder / "cert.pem", folder / "key.pem")
    request, names_file = folder / "request.csr", folder / "names"
    names_file.write_text(f"subjectAltName={names}\n")
    for words in (
        [
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-subj", "/CN=site", "-keyout", pair.key, "-out", request,
        ],
        [
            "x509", "-req", "-days", days, "-in", request, "-signkey", pair.key, "-extfile",
            names_file, "-out", pair.cert,
        ],
    ):  # fmt: skip
        subprocess.run([openssl, *map(str, words)], check=True, capture_output=True)
    return pair
