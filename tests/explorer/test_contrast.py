"""The colours can be read: WCAG 2.2 AA in both themes, computed from the tokens."""

import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).parents[2] / "static" / "css" / "tokens.css"
PAIR = re.compile(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);")
COLOURS = {name: {"light": light, "dark": dark} for name, light, dark in PAIR.findall(TOKENS.read_text())}

TEXT = [
    *((ink, ground) for ink in ("ink", "soft", "faint", "accent") for ground in ("ground", "panel", "raised")),
    *((ink, "panel") for ink in ("bad", "good", "warn")),
    *((ink, "raised") for ink in ("bad",)),
    *((ink, "accent-soft") for ink in ("ink", "soft", "accent", "bad")),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("good", "good-soft"),
    ("bad", "bad-soft"),
    ("warn", "warn-soft"),
    *((ink, "mark") for ink in ("ink", "soft")),
]
#: Bars, swatches, borders of inputs and the focus ring.
GRAPHICS = [
    *((hue, ground) for hue in ("dense", "fulltext", "freshness", "rerank") for ground in ("panel", "raised")),
    ("edge", "panel"),
    ("accent", "ground"),
]


def luminance(colour):
    """Return the relative luminance of "#rrggbb" as WCAG defines it."""
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_the_formula_agrees_with_known_pairs():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), TEXT)
def test_text_can_be_read(ink, ground, theme):
    assert contrast(COLOURS[ink][theme], COLOURS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("hue", "ground"), GRAPHICS)
def test_graphics_can_be_seen(hue, ground, theme):
    assert contrast(COLOURS[hue][theme], COLOURS[ground][theme]) >= 3.0


def test_every_colour_is_a_pair():
    text = TOKENS.read_text()
    assert len(re.findall(r"#[0-9a-f]{3,8}", text)) == 2 * len(COLOURS)
