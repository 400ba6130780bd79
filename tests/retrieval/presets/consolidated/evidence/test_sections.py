from dataclasses import replace

import pytest

from corecube.errors import ConfigError
from retrieval.presets.consolidated.evidence.sections import Section

SECTION = Section(
    name="figures",
    title="Figures",
    template="{subject} figures",
    cap=20,
    keep=6,
    required=("excel",),
    optional=("pdf",),
    never_recovered=("text",),
    quantity_floors={"excel": 3},
    survivor_floors={"excel": 2},
)


def test_the_subject_stands_in_the_query():
    assert SECTION.query("Elm Court {2}") == "Elm Court {2} figures"
    assert SECTION.query("") == "figures"


def test_a_required_type_is_wanted_once_where_nothing_is_said():
    assert SECTION.quantity_floor("excel") == 3
    assert replace(SECTION, quantity_floors={}).quantity_floor("excel") == 1
    assert SECTION.quantity_floor("pdf") == 0


def test_it_names_its_source_types():
    assert SECTION.source_types == {"excel", "pdf", "text"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "Key metrics"}, "name must start with a letter"),
        ({"title": " "}, "title must have 1 to 120 characters"),
        ({"template": ""}, "template must have"),
        ({"template": "{subject"}, "unmatched brace"),
        ({"template": "{subject.__class__}"}, "no placeholder except"),
        ({"template": "{subject!r:>9}"}, "no placeholder except"),
        ({"template": "{0}"}, "no placeholder except"),
        ({"hint": "tables"}, "hint must be one of code, contact"),
        ({"required": ("excel", "excel")}, "required contains a source type twice"),
        ({"optional": ("excel",)}, "optional contains required source types: excel"),
        ({"never_recovered": ("excel",)}, "never_recovered contains required source types: excel"),
        ({"quantity_floors": {"pdf": 1}}, "quantity_floors contains types that are not required: pdf"),
        ({"quantity_floors": {"excel": 0}}, "quantity_floors must be 1 or more"),
        ({"quantity_floors": {"excel": 21}}, "quantity_floors must not exceed cap"),
        ({"survivor_floors": {"excel": 7}}, "survivor_floors must not exceed keep"),
        ({"complexity": 21}, "complexity must not exceed cap"),
        ({"keep": 21}, "keep must not exceed cap"),
        ({"cap": 7}, "cap must be between 8 and"),
        ({"score_floor": 1.01}, "score_floor must be between"),
        ({"quality_floor": -0.01}, "quality_floor must be between"),
    ],
)
def test_what_fits_no_section_is_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        replace(SECTION, **changes)
