import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ingest.parse.number_format import Clock, built_in, number_format, plain


def shown(value, code, clock=Clock.SINCE_1900):
    return number_format(code).shown(value, clock)


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (0.153, "0%", "15%"),
        (0.1535, "0.0%", "15.4%"),
        (1234.5, "#,##0.00", "1,234.50"),
        (-1234.5, "#,##0.00_);(#,##0.00)", "(1,234.50)"),
        (-1234.5, "$#,##0.00;[Red]-$#,##0.00", "-$1,234.50"),
        (0, '_(* #,##0_);_(* (#,##0);_(* "-"??_);_(@_)', "-"),
        (1234567, "#,##0,", "1,235"),
        (12.5e6, '#,##0.0,,"M"', "12.5M"),
        (3.5, "#,##0.00\\ [$€-407]", "3.50 €"),
        (5550100, "000\\-0000", "555-0100"),
        (42, "00000", "00042"),
        (12345.678, "0.00E+00", "1.23E+04"),
        (2.5, "0", "3"),
        (1.005, "0.00", "1.01"),
        (-0.001, "0.00", "0.00"),
        (0.3, "0.##", "0.3"),
        (2024, '"FY"0', "FY2024"),
        (0.1 + 0.2, "General", "0.3"),
        (7, ";;;", ""),
        (7, "@", "7"),
    ],
)
def test_numbers_are_shown_as_a_spreadsheet_shows_them(value, code, expected):
    assert shown(value, code) == expected


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (45356, "mm-dd-yy", "2024-03-05"),
        (45356.75, "d/m/yyyy h:mm", "2024-03-05 18:00"),
        (45356, "mmm-yy", "Mar-24"),
        (45356, "[$-409]d\\ mmmm\\ yyyy;@", "5 March 2024"),
        (45356, "dddd", "Tuesday"),
        (0.75, "h:mm AM/PM", "6:00 PM"),
        (0.5 + 90 / 86400, "h:mm:ss", "12:01:30"),
        (1.5, "[h]:mm", "36:00"),
        (59, "yyyy-mm-dd", "1900-02-28"),
        (61, "yyyy-mm-dd", "1900-03-01"),
        (-1, "yyyy-mm-dd", "-1"),
    ],
)
def test_full_dates_are_iso_and_others_as_written(value, code, expected):
    assert shown(value, code) == expected


def test_a_workbook_may_count_from_1904():
    assert shown(1462, "yyyy-mm-dd", Clock.SINCE_1900) == shown(0, "yyyy-mm-dd", Clock.SINCE_1904) == "1904-01-01"


def test_codes_that_files_name_by_number():
    assert [built_in(number) for number in (0, 9, 14, 49, 999)] == ["General", "0%", "yyyy-mm-dd", "General", "General"]


@given(st.floats(-1e14, 1e14), st.integers(0, 6))
def test_decimals_are_rounded_to_the_nearest(value, decimals):
    code = "0." + "0" * decimals if decimals else "0"
    assert math.isclose(float(shown(value, code)), value, abs_tol=0.500001 * 10**-decimals, rel_tol=1e-12)


@given(st.integers(61, 100_000))
def test_every_day_of_the_calendar(days):
    assert shown(days, "yyyy-mm-dd") == (date(1899, 12, 30) + timedelta(days)).isoformat()


@given(st.integers(-(10**14), 10**14))
def test_whole_numbers_are_shown_whole(value):
    assert plain(float(value)) == str(value)


@given(st.text(max_size=30), st.floats(allow_nan=False, allow_infinity=False))
def test_no_code_breaks_the_reading(code, value):
    assert isinstance(shown(value, code), str)
