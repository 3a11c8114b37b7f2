"""The citation file names the current release and the papers that the code implements."""

from pathlib import Path

import yaml

from outrider import __version__


def test_the_citation_is_of_this_release_and_names_the_papers(repository: Path) -> None:
    cited = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert (str(cited["version"]), cited["license"]) == (__version__, "Apache-2.0")
    assert {"message", "title", "authors"} <= cited.keys()
    first = [reference["authors"][0]["family-names"] for reference in cited["references"]]
    assert first == ["Perez", "Vengerov", "Forshaw", "Suganthi"]
    for reference in cited["references"]:
        assert reference["title"]
        assert reference["type"] in ("conference-paper", "report", "article")
