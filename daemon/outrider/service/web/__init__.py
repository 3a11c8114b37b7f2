"""The HTTP server: status page, JSON API, metrics, probes, and commands over the Unix socket."""

from outrider.service.web.access import read_token
from outrider.service.web.app import make_app
from outrider.service.web.openapi import openapi
from outrider.service.web.serve import serve

__all__ = ["make_app", "openapi", "read_token", "serve"]
