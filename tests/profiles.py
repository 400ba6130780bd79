"""How many examples Hypothesis draws: a quarter in the default profile, all of them in the nightly one."""

import os
from typing import Final

from hypothesis import HealthCheck, settings

#: `default` or `nightly`.
PROFILE: Final = os.environ.get("HYPOTHESIS_PROFILE", "default")
_SHARES: Final = {"default": 0.25, "nightly": 1.0}
_EXAMPLES: Final = 100
_MIN_EXAMPLES: Final = 10


def examples(number: int) -> int:
    """Return how many of this number of examples the profile draws."""
    return min(number, max(_MIN_EXAMPLES, round(number * _SHARES[PROFILE])))


def load() -> None:
    """Load the profile. A machine that is busy draws slowly; that shows nothing about a strategy."""
    settings.register_profile(
        PROFILE, max_examples=examples(_EXAMPLES), suppress_health_check=[HealthCheck.too_slow], deadline=None
    )
    settings.load_profile(PROFILE)
