"""Certificates, keys, tokens and passwords, as `check-config` and `doctor` find them."""

import datetime as dt
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from outrider.cli.configuration import load
from outrider.cli.doctor.secret_files import check_secret_files
from tests.cli.running import outrider

TOKEN = "0123456789abcdef0123456789abcdef"
DAY = dt.timedelta(days=1)


def write_certificate(cert: Path, key: Path, days: float, begins_days: float = -400) -> None:
    """A certificate that signs itself and ends after so many days from now."""
    made = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(made.public_key())
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("outrider.example.org")]), False)
        .not_valid_before(now + begins_days * DAY).not_valid_after(now + days * DAY)
        .sign(made, hashes.SHA256())
    )  # fmt: skip
    cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    key.chmod(0o600)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A configuration with every such file, all of them right."""
    write_certificate(tmp_path / "cert.pem", tmp_path / "key.pem", 365)
    write_certificate(tmp_path / "our.pem", tmp_path / "our-key.pem", 365 * 40)
    for name, content in (("token", TOKEN), ("password", "secret\n")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o600)
    (tmp_path / "EventLog").write_text("")
    (tmp_path / "outrider.toml").write_text(
        f'state_dir = "{tmp_path}"\nlisten = "127.0.0.1:0"\n'
        f'tls_cert = "{tmp_path}/cert.pem"\ntls_key = "{tmp_path}/key.pem"\n'
        f'token_file = "{tmp_path}/token"\n'
        f'[adapters.pool]\ntype = "logtail"\npaths = ["{tmp_path}/EventLog"]\n'
        '[adapters.owners]\ntype = "mqtt"\nhost = "127.0.0.1"\nport = 1\nusername = "o"\n'
        f'password_file = "{tmp_path}/password"\ntls = true\nca_file = "{tmp_path}/cert.pem"\n'
        f'cert_file = "{tmp_path}/our.pem"\nkey_file = "{tmp_path}/our-key.pem"\n'
    )
    return tmp_path


def told(site: Path) -> tuple[int, dict[str, Any]]:
    done = outrider("check-config", site / "outrider.toml", "--json")
    return done.code, json.loads(done.out)


def found_by_doctor(site: Path, whole: bool = False) -> dict[str, dict[str, Any]]:
    """Return the doctor's checks of the files; `whole` runs the command, with the broker."""
    if not whole:
        checks = check_secret_files(load(site / "outrider.toml"))
        return {check.name: check._asdict() for check in checks}
    done = outrider("doctor", "--config", site / "outrider.toml", "--json")
    return {check["name"]: check for check in json.loads(done.out)["checks"]}


def test_right_files_are_told_as_right(site: Path) -> None:
    code, answer = told(site)
    assert (code, answer.get("warnings")) == (0, []), answer
    found = found_by_doctor(site, whole=True)
    names = ("tls_cert", "tls_key", "token_file", "adapter owners password_file",
             "adapter owners ca_file", "adapter owners cert_file",
             "adapter owners key_file")  # fmt: skip
    assert {name: found[name]["state"] for name in names} == dict.fromkeys(names, "ok")
    ends = dt.datetime.now(dt.UTC) + 365 * DAY
    assert f"valid until {ends:%Y-%m-%d}" in found["tls_cert"]["found"]
    ends = dt.datetime.now(dt.UTC) + 365 * 40 * DAY  # beyond 2050 the file writes it otherwise
    assert f"valid until {ends:%Y-%m-%d}" in found["adapter owners cert_file"]["found"]


def renewed(days: float, begins_days: float = -400) -> Callable[[Path], object]:
    return lambda site: write_certificate(site / "cert.pem", site / "key.pem", days, begins_days)


def other_key(site: Path) -> None:
    write_certificate(site / "thrown-away.pem", site / "key.pem", 365)


def encrypted(site: Path) -> None:
    made = ec.generate_private_key(ec.SECP256R1())
    (site / "key.pem").write_bytes(
        made.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"pass"),
        )
    )


def pipe(site: Path) -> None:
    (site / "token").unlink()
    os.mkfifo(site / "token")


WRONG: list[tuple[Callable[[Path], object], str, str]] = [
    (renewed(-2), "tls_cert", "expired 2.0 d ago"),
    (renewed(400, begins_days=3), "tls_cert", "not valid before"),
    (lambda site: (site / "cert.pem").unlink(), "tls_cert", "No such file"),
    (lambda site: (site / "cert.pem").write_text("no"), "tls_cert", "contains no certificate"),
    (lambda site: (site / "cert.pem").write_bytes(b"\xff\xfe"), "tls_cert", "not a PEM file"),
    (
        lambda site: (site / "cert.pem").write_text(
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
        ),
        "tls_cert",
        "cannot be read",
    ),
    (lambda site: (site / "cert.pem").write_bytes(b"x" * 2_000_000), "tls_cert", "larger than"),
    (other_key, "tls_key", "is not the key of the certificate"),
    (encrypted, "tls_key", "with a passphrase"),
    (lambda site: (site / "key.pem").write_text("no"), "tls_key", "not a private key"),
    (lambda site: (site / "key.pem").unlink(), "tls_key", "No such file"),
    (lambda site: (site / "token").write_text("short"), "token_file", "16 characters or more"),
    (lambda site: (site / "token").write_bytes(b"\xff" * 40), "token_file", "16 characters"),
    (pipe, "token_file", "not a regular file"),
    (lambda site: (site / "token").unlink(), "token_file", "No such file"),
    (lambda site: (site / "password").write_text("\nx"), "password_file", "first line is empty"),
    (lambda site: (site / "password").write_bytes(b"\xff\xfe"), "password_file", "is not text"),
    (lambda site: (site / "our-key.pem").unlink(), "key_file", "No such file"),
]


@pytest.mark.parametrize(("break_", "name", "why"), WRONG)
def test_what_cannot_be_used_fails_and_is_named_with_a_remedy(
    site: Path, break_: Callable[[Path], object], name: str, why: str
) -> None:
    break_(site)
    code, answer = told(site)
    assert code == 2
    assert answer["ok"] is False
    assert str(site / "outrider.toml") in answer["error"]
    assert name in answer["error"]
    assert why in answer["error"]
    assert "; " in answer["error"]
    found = next(check for key, check in found_by_doctor(site).items() if key.endswith(name))
    assert found["state"] == "fail"
    assert why in found["found"]
    assert found["remedy"]
    for text in (json.dumps(answer), json.dumps(found)):
        assert "SSL" not in text
        assert "_ssl.c" not in text
        assert TOKEN not in text
        assert "secret" not in text


@pytest.mark.parametrize("name", ["key.pem", "token", "password", "our-key.pem"])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_may_read_is_a_warning(site: Path, name: str, mode: int) -> None:
    (site / name).chmod(mode)
    code, answer = told(site)
    assert code == 0
    (warning,) = answer["warnings"]
    assert f"chmod 600 {site / name}" in warning
    assert f"mode {mode:04o}" in warning
    assert "warning    " in outrider("check-config", site / "outrider.toml").out
    found = found_by_doctor(site)
    assert [check["state"] for check in found.values() if str(site / name) in check["found"]] == [
        "warn"
    ]


@pytest.mark.parametrize(("days", "warned"), [(29.5, True), (30.5, False)])
def test_a_certificate_that_ends_within_a_month_is_a_warning(
    site: Path, days: float, warned: bool
) -> None:
    write_certificate(site / "cert.pem", site / "key.pem", days)
    code, answer = told(site)
    assert code == 0
    assert any("tls_cert" in line and "expires in" in line for line in answer["warnings"]) == warned
    assert found_by_doctor(site)["tls_cert"]["state"] == ("warn" if warned else "ok")


def test_a_key_without_its_certificate_would_mean_no_tls(site: Path) -> None:
    file = site / "outrider.toml"
    text = file.read_text().splitlines()
    file.write_text("\n".join(line for line in text if not line.startswith("tls_cert")) + "\n")
    code, answer = told(site)
    assert code == 2
    assert "tls_cert is not set, so there is no TLS" in answer["error"]
