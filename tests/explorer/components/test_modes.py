"""The modes that the console offers with each preset."""

import pytest

from explorer.components.search_page import mode_in, modes_of


@pytest.mark.parametrize(
    ("preset", "modes"),
    [
        ("corecube", ("hybrid", "dense", "fulltext")),
        ("contextpack", ("hybrid", "dense", "fulltext")),
        ("helix", ("hybrid", "dense", "bm25")),
        ("consolidated", ("hybrid", "dense", "bm25")),
        ("no-such-preset", ("hybrid", "dense", "fulltext")),
    ],
)
def test_a_preset_has_the_modes_of_its_legs(preset, modes):
    assert modes_of(preset) == modes


def test_a_sparse_model_is_a_mode_of_the_preset_that_has_that_leg(settings):
    settings.CORECUBE_SPARSE_MODEL = "splade"
    assert modes_of("helix") == ("hybrid", "dense", "bm25", "sparse")
    assert "sparse" not in modes_of("consolidated")


@pytest.mark.parametrize(
    ("preset", "asked", "mode"),
    [
        ("helix", "fulltext", "bm25"),
        ("corecube", "bm25", "fulltext"),
        ("contextpack", "sparse", "fulltext"),
        ("helix", "bm25", "bm25"),
        ("consolidated", "hybrid", "hybrid"),
        ("corecube", "dense", "dense"),
        ("corecube", "graph", "graph"),
        ("helix", "", ""),
    ],
)
def test_words_alone_stay_words_alone_with_another_preset(preset, asked, mode):
    assert mode_in(preset, asked) == mode
