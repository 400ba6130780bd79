import math
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from retrieval.engine.tunables import Change, Tunables, diff, tunable
from retrieval.errors import OverridesError, TunablesError
from retrieval.presets.consolidated.config import ConsolidatedConfig
from retrieval.presets.corecube.config import CorecubeConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Tunables):
    """A leg."""

    depth: int = tunable(10, low=1, high=100, unit="hits", help="Hits.", costs=True)
    weight: float = tunable(0.5, low=0.0, high=1.0, unit="", help="Weight.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels(Tunables):
    """When it is enough."""

    upper: float = tunable(0.6, low=0.0, high=1.0, unit="", help="All.")
    lower: float = tunable(0.3, low=0.0, high=1.0, unit="", help="Some.", at_most="upper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest(Tunables):
    """Everything."""

    limit: int = tunable(5, low=0, high=9, unit="s", help="Limit.")
    leg: Config = field(default_factory=Config)
    levels: Levels = field(default_factory=Levels)


NEST = Nest()
FACTS = {facts.name: facts for facts in NEST.declared_below()}
PRESET = CorecubeConfig()
PRESET_FACTS = {facts.name: facts for facts in PRESET.declared_below()}

junk = st.one_of(
    st.none(), st.booleans(), st.text(max_size=5), st.floats(), st.integers(), st.lists(st.integers(), max_size=2)
)
inside = st.sampled_from(sorted(PRESET_FACTS)).flatmap(
    lambda name: st.tuples(st.just(name), st.floats(PRESET_FACTS[name].low, PRESET_FACTS[name].high))
)
mappings = st.one_of(
    st.dictionaries(st.one_of(st.sampled_from(sorted(PRESET_FACTS)), st.text(max_size=8)), junk, max_size=6),
    st.lists(inside, max_size=8).map(dict),
)


def assert_within_bounds(config):
    for name, value in config.values().items():
        facts = PRESET_FACTS[name]
        assert facts.low <= value <= facts.high
        assert type(value) is (int if facts.is_whole else float)
        assert not facts.at_most or value <= config.values()[facts.at_most]


@pytest.mark.parametrize("depth", [1, 100])
def test_bounds_are_allowed(depth):
    assert Config(depth=depth).depth == depth


@pytest.mark.parametrize("depth", [0, 101, float("nan")])
def test_a_value_out_of_bounds_is_named(depth):
    with pytest.raises(ConfigError, match=r"Config.depth must be between 1 and 100"):
        Config(depth=depth)


@pytest.mark.parametrize("depth", [True, "7", None, 2.5])
def test_a_value_of_another_type_is_named(depth):
    with pytest.raises(ConfigError, match=r"Config.depth must be a"):
        Config(depth=depth)


def test_one_that_exceeds_its_ceiling_is_named():
    assert Levels(upper=0.2, lower=0.2).lower == 0.2
    with pytest.raises(ConfigError, match=r"Levels\.lower must not exceed upper"):
        Levels(upper=0.2)


def test_declarations_carry_what_forms_and_docs_need():
    facts = Config.declared()[0]
    assert (facts.name, facts.default, facts.low, facts.high, facts.unit, facts.help) == (
        "depth",
        10,
        1,
        100,
        "hits",
        "Hits.",
    )
    assert (facts.costs, facts.is_whole, facts.at_most) == (True, True, "")


def test_a_nest_is_told_by_sections_under_dotted_names():
    assert [(section.name, section.help) for section in NEST.sections()] == [
        ("", "Everything."),
        ("leg", "A leg."),
        ("levels", "When it is enough."),
    ]
    assert list(FACTS) == ["limit", "leg.depth", "leg.weight", "levels.upper", "levels.lower"]
    assert FACTS["levels.lower"].at_most == "levels.upper"


def test_a_number_of_a_nest_has_the_default_of_the_nest():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Outer(Tunables):
        first: Nest = field(default_factory=lambda: Nest(limit=7, leg=Config(depth=3)))
        second: Config = field(default_factory=Config)

    assert {facts.name: facts.default for facts in Outer.declared_below()} == Outer().values()
    assert Config.declared()[0].default == 10


def test_values_go_out_and_in_by_dotted_names():
    changed = NEST.with_values({"leg.depth": 7.0, "limit": 1, "leg.weight": 1})
    assert changed.values() == {"limit": 1, "leg.depth": 7, "leg.weight": 1.0, "levels.upper": 0.6, "levels.lower": 0.3}
    assert type(changed.leg.depth) is int
    assert type(changed.leg.weight) is float
    assert NEST.leg.depth == 10


def test_everything_that_does_not_fit_is_named_at_once():
    with pytest.raises(TunablesError) as caught:
        NEST.with_values({"leg.depth": 2.5, "leg.weight": math.inf, "limit": True, "nope": 1, "levels": {"upper": 1}})
    assert caught.value.problems == {
        "leg.depth": "must be a whole number",
        "leg.weight": "must be between 0.0 and 1.0",
        "limit": "must be a number",
        "nope": "is not a setting",
        "levels": "is not a setting",
    }
    assert "leg.weight must be between 0.0 and 1.0." in str(caught.value)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"levels.lower": 0.7}, {"levels.lower"}),
        ({"levels.upper": 0.2}, {"levels.upper"}),
        ({"levels.upper": 0.1, "levels.lower": 0.2}, {"levels.upper", "levels.lower"}),
        ({"levels.upper": 0.2, "levels.lower": 0.2}, set()),
    ],
)
def test_out_of_order_values_are_named_where_they_were_given(values, named):
    assert set(NEST.problems(values)) == named


def test_a_long_or_strange_name_is_quoted_and_cut():
    error = TunablesError({"x" * 5000: "is not a setting", "<b>\ud800": "is not a setting"})
    assert len(str(error)) < 200
    assert "'<b>\\ud800' is not a setting." in str(error)


def test_an_error_tells_the_first_five_and_counts_the_rest():
    assert str(TunablesError(dict.fromkeys("abcdefg", "is not a setting"))).endswith("e is not a setting. And 2 more.")


@given(mappings)
def test_any_mapping_gives_a_config_within_bounds_or_names_its_faults(values):
    problems = PRESET.problems(values)
    assert set(problems) <= set(values)
    if problems:
        with pytest.raises(TunablesError) as caught:
            PRESET.with_values(values)
        assert caught.value.problems == problems
        return
    config = PRESET.with_values(values)
    assert_within_bounds(config)
    assert config.values() == PRESET.values() | values


@given(mappings)
def test_whatever_was_stored_gives_a_config_that_fits(values):
    config, unfit = PRESET.fitted(values)
    assert_within_bounds(config)
    kept = {name: value for name, value in values.items() if name not in unfit}
    assert config == PRESET.with_values(kept)
    assert bool(unfit) == bool(PRESET.problems(values))


def test_leaving_one_out_can_leave_out_another():
    # Without the upper level, which is out of bounds, the lower one stands above the default.
    config, unfit = NEST.fitted({"levels.upper": 7.0, "levels.lower": 0.9, "limit": 3})
    assert set(unfit) == {"levels.upper", "levels.lower"}
    assert config == Nest(limit=3)


def test_a_request_lowers_what_costs_and_sets_the_rest_freely():
    config = NEST.with_overrides({"leg.depth": 9, "leg.weight": 1.0})
    assert (config.leg.depth, config.leg.weight) == (9, 1.0)


def test_a_request_cannot_raise_what_costs_above_what_is_live():
    live = NEST.with_values({"leg.depth": 20})
    assert live.with_overrides({"leg.depth": 20}).leg.depth == 20
    with pytest.raises(OverridesError) as caught:
        live.with_overrides({"leg.depth": 21, "leg.weight": 2, "nope": 1})
    assert caught.value.problems == {
        "leg.depth": "is costly: a request can only lower it from 20",
        "leg.weight": "must be between 0.0 and 1.0",
        "nope": "is not a setting",
    }


def test_a_request_raises_what_costs_up_to_the_given_limit():
    live = NEST.with_values({"leg.depth": 20})
    assert live.with_overrides({"leg.depth": 30}, limits={"leg.depth": 30}).leg.depth == 30
    assert live.with_overrides({"leg.depth": 20}, limits={"leg.depth": 0}).leg.depth == 20
    with pytest.raises(OverridesError) as caught:
        live.with_overrides({"leg.depth": 31}, limits={"leg.depth": 30, "": 99})
    assert caught.value.problems == {"leg.depth": "is costly: a request can set at most 30"}


@given(mappings, mappings)
def test_no_request_costs_more_than_what_is_live(stored, overrides):
    live, _ = PRESET.fitted(stored)
    try:
        config = live.with_overrides(overrides)
    except OverridesError:
        return
    before, after = live.values(), config.values()
    assert all(after[name] <= before[name] for name, facts in PRESET_FACTS.items() if facts.costs)
    assert_within_bounds(config)


def test_a_diff_names_what_changed_in_order():
    assert diff(NEST, NEST) == ()
    assert diff(NEST, NEST.with_values({"levels.upper": 0.9, "limit": 1})) == (
        Change("limit", 5, 1),
        Change("levels.upper", 0.6, 0.9),
    )


def test_what_a_preset_inherits_and_does_not_use_can_neither_be_seen_nor_set():
    names = {facts.name for facts in ConsolidatedConfig.declared_below()}
    assert ConsolidatedConfig.unused == {"fusion.pool", "quality.minimum"}
    assert ConsolidatedConfig.unused.isdisjoint(names)
    assert "fusion.rank_constant" in names
    assert "quality" not in {section.name for section in ConsolidatedConfig.sections()}
    assert ConsolidatedConfig().problems({"fusion.pool": 50}) == {"fusion.pool": "is not a setting"}
    assert {facts.name for facts in CorecubeConfig.declared_below()} >= ConsolidatedConfig.unused
