"""Output of qstat and pbsnodes: as documented, broken as in some versions, and hostile."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_adapters.pbs import dialects
from tests.adapters.pbs.fake_pbs import FakePBS, answer

OPENPBS = """\
{
    "timestamp":1605606000,
    "pbs_version":"20.0.1",
    "pbs_server":"pbs",
    "Jobs":{
        "12.pbs":{
            "Job_Name":"STDIN",
            "Job_Owner":"ann@login",
            "resources_used":{
                "cput":"00:00:00",
                "walltime":"00:00:05"
            },
            "job_state":"R",
            "exec_host":"n1/0*2+n2/0*2",
            "Priority":0,
            "Resource_List":{
                "ncpus":4,
                "select":"2:ncpus=2:mem=2gb",
                "walltime":"01:00:00"
            },
            "Variable_List":{
                "PBS_O_HOME":"/home/ann",
                "PBS_O_LANG":%s
            },
            "run_count":1,
            "project":%s
        },
        "13[].pbs":{
            "job_state":"B"
        }
    }
}
"""
TORQUE = """\
<Data><Job><Job_Id>7.t</Job_Id><Job_Name>a&amp;b</Job_Name><job_state>R</job_state>
<Resource_List><nodes>1:ppn=4</nodes><walltime>01:00:00</walltime></Resource_List>
<Variable_List>X=&lt;job_state&gt;C</Variable_List><ctime>1605606000</ctime></Job>
<Job><Job_Id>8.t</Job_Id><job_state>Q</job_state></Job></Data>
"""


def test_json_as_documented() -> None:
    jobs, twice = dialects.json_entries(OPENPBS % ('"C"', '"_pbs_project_default"'), "Jobs")
    assert not twice
    assert jobs["12.pbs"] == {
        "Job_Owner": "ann@login",
        "resources_used.cput": "00:00:00",
        "resources_used.walltime": "00:00:05",
        "job_state": "R",
        "exec_host": "n1/0*2+n2/0*2",
        "Priority": "0",
        "Resource_List.ncpus": "4",
        "Resource_List.select": "2:ncpus=2:mem=2gb",
        "Resource_List.walltime": "01:00:00",
        "run_count": "1",
        "project": "_pbs_project_default",
    }
    assert jobs["13[].pbs"] == {"job_state": "B"}


@pytest.mark.parametrize(
    "environment",
    ['"a "quoted" word"', '"C:\\new\\x"', '"two\nlines"', '"() {  echo "}",\n}"', "007", '"\t"'],
)
def test_json_that_users_environments_break_is_read_all_the_same(environment: str) -> None:
    text = OPENPBS % (environment, '"p"')
    with pytest.raises(ValueError, match=r"."):
        json.loads(text)
    jobs, twice = dialects.json_entries(text, "Jobs")
    sound, _ = dialects.json_entries(OPENPBS % ('"C"', '"p"'), "Jobs")
    assert (jobs, twice) == (sound, [])


def test_numbers_with_leading_zeros_are_texts() -> None:
    jobs, _ = dialects.json_entries(OPENPBS % ('"C"', "007"), "Jobs")
    assert jobs["12.pbs"]["project"] == "007"


FORGED = """"x"
            },
%s            "job_state":"F",
            "y":{
                "z":"1" \""""


@pytest.mark.parametrize("between", ["", '        },\n        "12.pbs":{\n'])
def test_a_job_whose_environment_forges_attributes_is_not_believed(between: str) -> None:
    jobs, twice = dialects.json_entries(OPENPBS % (FORGED % between, '"p"'), "Jobs")
    assert twice == ["12.pbs"]
    assert "12.pbs" not in jobs


def test_none_in_the_queue_is_no_error_and_something_else_is() -> None:
    empty = '{"timestamp":1605606000,"pbs_version":"20.0.1","pbs_server":"pbs"}'
    assert dialects.json_entries(empty, "Jobs") == ({}, [])
    for other in ("", "qstat: not found", "[]", '{"Jobs":[]}', "null", "5"):
        with pytest.raises(ValueError, match="no 'Jobs'"):
            dialects.json_entries(other, "Jobs")


@given(st.text(max_size=300), st.integers(0, 900))
def test_whatever_stands_in_the_answer_nothing_but_a_value_error_comes_of_it(
    junk: str, at: int
) -> None:
    text = OPENPBS % ('"C"', '"p"')
    for broken in (junk, text[:at] + junk + text[at:], text[:at]):
        try:
            jobs, _ = dialects.json_entries(broken, "Jobs")
        except ValueError:
            continue
        assert all(isinstance(value, str) for ad in jobs.values() for value in ad.values())


def test_xml_as_documented() -> None:
    assert dialects.xml_entries(TORQUE, "Job", "Job_Id") == {
        "7.t": {
            "Job_Id": "7.t",
            "job_state": "R",
            "Resource_List.nodes": "1:ppn=4",
            "Resource_List.walltime": "01:00:00",
            "ctime": "1605606000",
        },
        "8.t": {"Job_Id": "8.t", "job_state": "Q"},
    }
    assert dialects.xml_entries("\n", "Job", "Job_Id") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<Data><Job>", "not XML"),
        ("qstat: not found", "not XML"),
        ('<!DOCTYPE d [<!ENTITY a "aaaa">]><Data>&a;</Data>', "a document type or an entity"),
        ("<Data>" + "<a>" * 50 + "</a>" * 50 + "</Data>", "nested deeper"),
    ],
)
def test_what_torque_never_prints_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        dialects.xml_entries(text, "Job", "Job_Id")


@pytest.mark.parametrize("broken", [False, True])
def test_the_commands_that_stand_in_print_what_is_read_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: bool
) -> None:
    pbs = FakePBS(tmp_path, broken=broken)
    job = pbs.submit(Variable_List='A=say "hi",B=C:\\temp')
    answer(str(tmp_path / "state.json"), "qstat", ["-t", "-f", "-F", "json"])
    printed = capsys.readouterr().out
    if broken:
        with pytest.raises(ValueError, match=r"."):
            json.loads(printed)
    jobs, twice = dialects.json_entries(printed, "Jobs")
    assert not twice
    assert jobs[job]["Resource_List.walltime"] == "01:00:00"
    assert "A" not in str(jobs[job].get("Variable_List", ""))
