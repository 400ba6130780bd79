"""`manage.py evidence`: what a user may see of each section, for the shell."""

import pytest
from django.core.management import CommandError, call_command

from retrieval.search.section_sets import save_section_set
from tests.retrieval.search.test_evidence_runs import WRITTEN


@pytest.fixture
def run(world, capsys):
    """Return a function that gathers evidence and returns the lines that were printed."""
    save_section_set(WRITTEN, actor=world.alice)

    def printed(*arguments):
        call_command("evidence", "audit", "--subject", "March", *arguments)
        return capsys.readouterr().out.splitlines()

    return printed


def test_it_prints_the_matrix_and_the_best_hits(run):
    lines = run("--user", "bob")
    assert lines[0].startswith("| section | excel | pdf | markdown |")
    assert lines[0].endswith("| seconds |")
    assert [line.split(" | ")[0] for line in lines[2:5]] == ["| events", "| costs", "| bare"]
    assert lines[3].split(" | ")[1] == "missing"
    assert "Events" in lines
    assert any("Rolling back" in line for line in lines)


def test_it_shows_what_the_user_may_see_alone(run):
    assert not any("Breach" in line or "Costs  " in line for line in run("--user", "bob"))
    assert any("Breach" in line for line in run("--user", "alice", "--section", "events"))


def test_it_keeps_to_compartments(run):
    lines = run("--user", "alice", "--section", "events", "--compartment", "finance")
    assert any("  Costs  " in line for line in lines)
    assert not any("Rolling back" in line for line in lines)


def test_sections_without_time_say_so(run):
    lines = run("--user", "bob", "--budget", "0")
    assert sum("deadline_exceeded_before_setup" in line for line in lines) == 3


@pytest.mark.parametrize(
    "arguments", [("--user", "nobody"), ("--user", "bob", "--section", "nope"), ("--user", "bob", "--compartment", "x")]
)
def test_what_is_not_there_is_refused(run, arguments):
    with pytest.raises(CommandError):
        run(*arguments)
