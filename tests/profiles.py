"""How much the profile tries: a share of the examples and cases in the default one, all in the nightly one."""

import os
from collections.abc import Iterable
from typing import Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings

#: `default` or `nightly`.
PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
_SHARES: Final = {"default": 0.05, "nightly": 1.0}
_EXAMPLES: Final = 100
_MIN_EXAMPLES: Final = 5

_Case = TypeVar("_Case")

#: Marks a test that the default profile leaves out.
nightly: Final = pytest.mark.skipif(PROFILE == "default", reason="runs in the nightly profile")


def examples(number: int) -> int:
    """Return how many of this number of examples the profile draws."""
    return min(number, max(_MIN_EXAMPLES, round(number * _SHARES[PROFILE])))


def turn(cases: Iterable[_Case], number: int, *, of: int) -> list[_Case]:
    """Return the cases of a turn: in the default profile every `of`-th one, others for the next number; else all."""
    return list(cases)[number % of :: of] if PROFILE == "default" else list(cases)


def load() -> None:
    """Load the profile. A machine that is busy draws slowly; that shows nothing about a strategy."""
    settings.register_profile(
        PROFILE, max_examples=examples(_EXAMPLES), suppress_health_check=[HealthCheck.too_slow], deadline=None
    )
    settings.load_profile(PROFILE)
