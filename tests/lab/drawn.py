"""Contents of a drawing, read from its SVG."""

import re
from xml.etree import ElementTree as ET

from outrider_lab.reporting.page import Drawing

SVG = "{http://www.w3.org/2000/svg}"


def texts(figure: Drawing, part: str) -> list[str]:
    """Words in the parts of a drawing whose id begins so."""
    root = ET.fromstring(figure.svg)
    parts = [g for g in root.iter(f"{SVG}g") if re.match(rf"{part}(_\d+)?$", g.get("id", ""))]
    return ["".join(text.itertext()).strip() for g in parts for text in g.iter(f"{SVG}text")]
