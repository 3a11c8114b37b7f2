"""The web: a status page, a JSON interface, metrics and two probes. It only ever reads."""

from outrider.service.web.access import read_token
from outrider.service.web.app import make_app
from outrider.service.web.openapi import openapi
from outrider.service.web.serve import serve

__all__ = ["make_app", "openapi", "read_token", "serve"]
