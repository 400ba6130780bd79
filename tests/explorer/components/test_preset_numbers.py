from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from corecube.models import User
from explorer.components.forms import TunablesForm
from explorer.components.preset_numbers import change_rows, field_sections, preset_row, version_rows
from retrieval.models import PresetVersion
from retrieval.presets.catalog import PRESETS
from retrieval.presets.corecube.config import CorecubeConfig
from retrieval.search.configuration import Configuration

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CONFIG = CorecubeConfig()


def version(number, status, **fields):
    return PresetVersion(
        preset="corecube",
        number=number,
        status=status,
        created_at=NOW - timedelta(days=4),
        created_by=User(username="alice"),
        **fields,
    )


def test_a_preset_says_since_when_by_whom_a_version_is_live():
    live = version(3, "live", values={"a": 1}, promoted_at=NOW - timedelta(hours=2), promoted_by=User(username="bob"))
    row = preset_row(PRESETS["corecube"], live=live, draft=version(4, "draft"), now=NOW)
    assert (row["live"], row["since"], row["changed"], row["draft"]) == ("version 3", "by bob, 2 hours ago", 1, 4)


def test_a_number_that_is_the_default_by_now_is_no_change():
    values = {"fusion.pool": 100, "blend.dense": 0.7}
    (helix, *_) = version_rows([PresetVersion(preset="helix", number=1, values={"fusion.pool": 100})], NOW)
    assert helix["changed"] == 0
    assert preset_row(PRESETS["corecube"], live=version(1, "live", values=values), draft=None, now=NOW)["changed"] == 2


def test_the_history_ends_with_the_shipped_defaults():
    rows = list(version_rows([version(2, "draft"), version(1, "retired", promoted_at=NOW)], NOW))
    assert [(row["number"], row["status"], row["is_live"]) for row in rows] == [
        (2, "draft", False),
        (1, "retired", False),
        (0, "live", True),
    ]
    assert [row["created"] for row in rows] == ["by alice, 4 days ago", "by alice, 4 days ago", ""]
    assert [row["promoted"] for row in rows] == ["", "by a deleted user, just now", ""]
    assert [row["is_live"] for row in version_rows([version(1, "live")], NOW)] == [True, False]


def test_changes_are_figures_with_their_units():
    (pool, weight) = change_rows(CONFIG, CONFIG.with_values({"blend.dense": 1, "fusion.pool": 1500}))
    assert (pool.name, pool.before, pool.after) == ("fusion.pool", "160 hits", "1,500 hits")
    assert (weight.before, weight.after, weight.help) == ("0.6", "1", "Weight of vector similarity.")


@pytest.mark.parametrize(("given", "live"), [(0.6, ""), ("0.6", ""), (0.7, "live 0.6"), ("junk", "live 0.6")])
def test_a_field_is_marked_where_it_is_not_what_is_live(given, live):
    form = TunablesForm(defaults=CONFIG, initial=CONFIG.values() | {"blend.dense": given})
    rows = {row.facts.name: row for it in field_sections(form, Configuration(config=CONFIG)) for row in it.rows}
    assert rows["blend.dense"].live == live
    assert rows["blend.dense"].limits == "default 0.6, 0 to 1"


def test_fields_stand_in_the_sections_of_the_configuration():
    sections = list(field_sections(TunablesForm(defaults=CONFIG), Configuration(config=CONFIG)))
    assert [it.title for it in sections][:4] == ["General", "Query", "Vector search", "Full-text search"]
    assert [row.facts.name for it in sections for row in it.rows] == list(CONFIG.values())


@pytest.mark.parametrize(("before", "after"), list(permutations(PRESETS.values(), 2)), ids=lambda preset: preset.name)
def test_of_two_presets_the_settings_that_both_have_are_compared(before, after):
    both = {it.name for it in before.defaults.declared_below()} & {it.name for it in after.defaults.declared_below()}
    old, new = before.defaults.values(), after.defaults.values()
    shown = [row.name for row in change_rows(before.defaults, after.defaults)]
    assert set(shown) == {name for name in both if old[name] != new[name]}


def test_a_slider_moves_in_steps_and_over_a_large_range_in_ratios():
    sections = field_sections(TunablesForm(defaults=CONFIG), Configuration(config=CONFIG))
    steps = {row.facts.name: row.slider_steps for it in sections for row in it.rows}
    assert (steps["assemble.heading_path"], steps["answerability.sentences"], steps["blend.dense"]) == (1, 5, 100)
    assert (steps["fulltext.depth"], steps["deadline_ms"], steps["dense.files_below"]) == (999, 0, 0)
