"""Times as text. Pure."""

from typing import Final

#: Milliseconds below which a decimal is shown, and below which only a bound is shown.
_FINE_MS: Final = 10
_SHORT_MS: Final = 0.05


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds: "< 0.1", "0.4", "38", "1,204"."""
    value = seconds * 1000
    if value < _SHORT_MS:
        return "< 0.1"
    return f"{value:.1f}" if value < _FINE_MS else f"{value:,.0f}"
