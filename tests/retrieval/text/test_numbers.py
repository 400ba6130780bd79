"""Numbers as languages write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.numbers import in_english


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("1.250,50 €", "german", "1,250.50 €"),
        ("20.000 Euro, 1.250.000 Euro", "german", "20,000 Euro, 1,250,000 Euro"),
        ("38,5 Stunden, 0,125 kg", "german", "38.5 Stunden, 0.125 kg"),
        ("plus de 1 500 € ou 2,70 €", "french", "plus de 1,500 € ou 2.70 €"),
        # What is no number, or is written in another way.
        (
            "am 03.03.2026 um 14.30 Uhr, Version 3.2, 85.50 €",
            "german",
            "am 03.03.2026 um 14.30 Uhr, Version 3.2, 85.50 €",
        ),
        ("1,250.50 €", "german", "1,250.50 €"),
        ("Tel. 0931 4471-210, Raum 12", "german", "Tel. 0931 4471-210, Raum 12"),
        ("1.250 kg", "english", "1.250 kg"),
    ],
)
def test_numbers_are_written_as_in_english(text, language, expected):
    assert in_english(text, language) == expected


@given(st.text("0123456789., \n€a", max_size=40))
def test_no_character_changes_its_place(text):
    changed = in_english(text, "german")
    assert len(changed) == len(text)
    assert all(one == other or {one, other} <= {".", ",", " "} for one, other in zip(text, changed, strict=True))
