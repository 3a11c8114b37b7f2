"""The door: who may come in, and what it is made of."""

import asyncio
import base64
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.web import read_token, serve
from outrider.service.web.access import is_allowed
from tests.service.web.small_site import SmallSite, visit

TOKEN = "0123456789abcdef0123456789abcdef"


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl on the PATH to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/metrics", "/readyz", "/api/v1/status"])
async def test_without_the_token_nothing_is_shown(path: str) -> None:
    async with visit(SmallSite(), TOKEN) as client, client.get(path) as answer:
        assert answer.status == 401
        schemes = [value.split()[0] for value in answer.headers.getall("WWW-Authenticate")]
        assert schemes == ["Bearer", "Basic"]
        assert set(await answer.json()) == {"error"}


async def test_not_even_which_paths_there_are_is_told_without_the_token() -> None:
    async with visit(SmallSite(), TOKEN) as client:
        for path in ("/nothing", "/api/v1/explain/1042.0"):
            async with client.get(path) as answer:
                assert answer.status == 401
        async with client.post("/api/v1/status") as answer:
            assert answer.status == 401


async def test_health_is_told_to_everybody() -> None:
    async with visit(SmallSite(), TOKEN) as client, client.get("/healthz") as answer:
        assert answer.status == 200
        assert await answer.json() == {"ok": True}


@pytest.mark.parametrize(
    "authorization",
    [f"Bearer {TOKEN}", f"bearer  {TOKEN}", basic("anybody", TOKEN), basic("", TOKEN)],
)
async def test_the_token_opens_as_bearer_or_as_password(authorization: str) -> None:
    headers = {"Authorization": authorization}
    async with (
        visit(SmallSite(), TOKEN) as client,
        client.get("/api/v1/status", headers=headers) as answer,
    ):
        assert answer.status == 200


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        TOKEN,
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Token {TOKEN}",
        basic(TOKEN, ""),
        "Basic !!!",
        f"Basic {TOKEN}",
        "Bearer \udcff\udcfe",
        "Basic ü",
    ],
)
def test_everything_else_stays_outside(authorization: str) -> None:
    assert not is_allowed(authorization, TOKEN)


async def test_tls_is_spoken_with_the_given_certificate(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    trust = ssl.create_default_context(cafile=str(cert))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    app = SmallSite().app(TOKEN)
    async with serve(app, "127.0.0.1", 0, cert, key) as port, aiohttp.ClientSession() as client:
        url = f"https://127.0.0.1:{port}/api/v1/status"
        async with client.get(url, ssl=trust, headers=headers) as answer:
            assert answer.status == 200
            assert (await answer.json())["mode"] == "shadow"
        async with client.get(url, ssl=trust) as answer:
            assert answer.status == 401
        with pytest.raises(aiohttp.ClientError):
            await client.get(f"http://127.0.0.1:{port}/healthz")


async def test_who_never_agrees_on_tls_keeps_no_connection(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[serve.__module__], "HANDSHAKE_S", 0.2)
    async with serve(SmallSite().app(), "127.0.0.1", 0, *certificate) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        try:
            for reader, _ in silent:
                assert await asyncio.wait_for(reader.read(), 10.0) == b"", "the daemon hangs up"
        finally:
            for _, writer in silent:
                writer.close()


async def test_old_tls_is_refused(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    old = ssl.create_default_context(cafile=str(cert))
    app = SmallSite().app()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    async with serve(app, "127.0.0.1", 0, cert, key) as port, aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.get(f"https://127.0.0.1:{port}/healthz", ssl=old)


async def test_a_certificate_without_its_key_is_a_configuration_error(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, _ = certificate
    for wrong in (tmp_path / "missing.pem", cert):
        with pytest.raises(ConfigurationError, match=r"tls_cert.*tls_key.*expected PEM"):
            async with serve(SmallSite().app(), "127.0.0.1", 0, cert, wrong):
                pytest.fail("it served without a key")


async def test_a_taken_port_is_a_configuration_error_that_names_it() -> None:
    async with serve(SmallSite().app(), "127.0.0.1", 0) as port:
        with pytest.raises(ConfigurationError, match=f'"127.0.0.1:{port}": cannot listen there'):
            async with serve(SmallSite().app(), "127.0.0.1", port):
                pytest.fail("two listen on one port")


async def test_the_port_is_free_again_after_the_end() -> None:
    async with serve(SmallSite().app(), "127.0.0.1", 0) as port:
        assert port > 0
    async with serve(SmallSite().app(), "127.0.0.1", port) as again:
        assert again == port


def test_a_token_is_read_without_the_white_space_around_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file) == TOKEN


@pytest.mark.parametrize("content", ["", "\n", "short", "two words of sufficient length", "ü" * 20])
def test_a_bad_token_is_refused_and_never_shown(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match="token_file") as refused:
        read_token(file)
    if content.strip():
        assert content.strip() not in str(refused.value).removeprefix(f'"token_file" = "{file}"')


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere.*cannot be read: No such file"):
        read_token(tmp_path / "nowhere")


@pytest.mark.parametrize("scheme", ["Abc", "AWS4", "bear", "Bearers", "Digest", "Token", ""])
def test_the_token_under_another_scheme_is_no_token(scheme: str) -> None:
    assert is_allowed(f"bEARER {TOKEN}", TOKEN)
    assert not is_allowed(f"{scheme} {TOKEN}", TOKEN)
