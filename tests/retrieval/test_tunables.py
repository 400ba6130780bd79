from dataclasses import dataclass

import pytest

from corecube.errors import ConfigError
from retrieval.tunables import Tunables, tunable


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Tunables):
    depth: int = tunable(10, low=1, high=100, unit="hits", help="Hits.")


@pytest.mark.parametrize("depth", [1, 100])
def test_bounds_are_allowed(depth):
    assert Config(depth=depth).depth == depth


@pytest.mark.parametrize("depth", [0, 101, float("nan")])
def test_a_value_out_of_bounds_is_named(depth):
    with pytest.raises(ConfigError, match=r"Config.depth must lie between 1 and 100"):
        Config(depth=depth)


def test_declarations_carry_what_forms_and_docs_need():
    (facts,) = Config.declared()
    assert (facts.name, facts.default, facts.low, facts.high, facts.unit, facts.help) == (
        "depth",
        10,
        1,
        100,
        "hits",
        "Hits.",
    )
