"""What is answered while the daemon still reads its journal, and what answers without a token."""

from outrider.service.web.endpoints import ENDPOINTS


def test_whether_it_lives_and_what_it_does_is_answered_while_it_starts() -> None:
    """Else a service manager or a balancer that asks would take a long start for a hang."""
    assert {endpoint.path for endpoint in ENDPOINTS if endpoint.while_starting} == {
        "/", "/page/{asset}", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json",
    }  # fmt: skip


def test_only_whether_it_lives_is_told_to_everybody() -> None:
    assert {endpoint.path for endpoint in ENDPOINTS if endpoint.open} == {"/healthz"}
