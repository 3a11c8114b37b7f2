"""The HTTP face: a status page, a JSON interface, metrics and two probes. It only ever reads."""

from outrider.service.http.app import make_app
from outrider.service.http.auth import read_token
from outrider.service.http.faces import Faces
from outrider.service.http.openapi import openapi
from outrider.service.http.serve import serve

__all__ = ["Faces", "make_app", "openapi", "read_token", "serve"]
