"""The reference of the policy API is what docstrings and annotations say today."""

import re

import pytest

from tests.docs.pages import REPOSITORY
from tools.reference.policy_api_page import RECORDS, fields_of, policy_api_page

PAGE = REPOSITORY / "docs" / "reference" / "policy-api.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == policy_api_page(), "write it again: make docs"


@pytest.mark.parametrize("kind", RECORDS)
def test_every_attribute_is_listed_with_type_and_meaning(kind: type) -> None:
    section = policy_api_page().partition(f"### `{kind.__name__}`\n")[2].partition("\n##")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `[^`]+` \| (.+) \|$", section, re.MULTILINE))
    assert set(fields_of(kind)) <= set(rows), "an attribute without a line or without a type"
    assert all(rows.values())


@pytest.mark.parametrize("member", ["now", "free_n", "active_w", "tightest(cpus)", "cpus_left"])
def test_what_a_policy_sees_of_the_site_is_there(member: str) -> None:
    section = policy_api_page().partition("### `SiteView`\n")[2].partition("\n### ")[0]
    assert f"| `{member}" in section


def test_no_cell_is_empty_where_a_method_answers() -> None:
    for row in re.findall(r"^\| `\w+\(.*$", policy_api_page(), re.MULTILINE):
        assert not re.search(r"\|  \|", row.replace("\\|", "")), row
