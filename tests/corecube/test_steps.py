import io

import pytest

from corecube.steps import Steps


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_step_ends_in_one_line():
    out = io.StringIO()
    with Steps(out).step("Tables") as notes:
        notes.write("applying 0001\n")
    (line,) = out.getvalue().splitlines()
    assert line.startswith("  ✓ Tables")


def test_a_failed_step_says_so_and_passes_the_error_on():
    out = io.StringIO()
    with pytest.raises(ValueError, match="broken"), Steps(out).step("Tables"):
        raise ValueError("broken")
    assert out.getvalue() == "  ✗ Tables\n"


def test_a_terminal_shows_the_last_note_while_the_step_runs():
    out = Terminal()
    with Steps(out).step("Samples") as notes:
        notes.write("10 %\r20 %\n")
        shown = out.getvalue()
    assert "20 %" in shown
    assert "10 %" not in shown


def test_a_long_note_is_cut():
    out = Terminal()
    with Steps(out).step("Samples") as notes:
        notes.write("x" * 500)
        assert out.getvalue().count("x") < 80
