"""Tunables that an earlier release named otherwise: stored values and requests with the former names still count."""

from importlib import import_module

import pytest

from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import PresetConfig

_new_name = import_module("retrieval.migrations.0026_rename_tunables")._new_name

FORMER = PresetConfig.former_names


@pytest.mark.parametrize("former", FORMER)
def test_a_stored_value_is_read_under_its_former_name(former):
    present = FORMER[former]
    presets = [preset.defaults for preset in PRESETS.values() if present in preset.defaults.values()]
    assert presets
    for defaults in presets:
        assert former not in defaults.values()
        value = defaults.values()[present]
        changed = value - 1 if isinstance(value, int) else value * 0.9
        config, unfit = defaults.fitted({former: changed, "gone.long_ago": 1.0})
        unused = present in type(defaults).unused
        assert set(unfit) == {"gone.long_ago", present} if unused else {"gone.long_ago"}
        assert config.values()[present] == (value if unused else changed)


def test_the_migration_of_stored_versions_gives_the_same_names():
    assert {former: _new_name(former) for former in FORMER} == FORMER


def test_a_value_under_the_present_name_wins():
    values = {"quality.minimum": 0.2, "quality.least": 0.1, "blend.dense": 0.5}
    assert PresetConfig.by_present_names(values) == {"quality.minimum": 0.2, "blend.dense": 0.5}
