"""`manage.py tunables`: all settings of a preset, as a Markdown table."""

from argparse import ArgumentParser
from typing import Any

from corecube.commands import CoreCubeCommand
from retrieval.engine.tunables import TunableFacts
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.presets.preset import PresetConfig


class Command(CoreCubeCommand):
    """List a preset's settings with default, range, unit and meaning."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--preset", default=DEFAULT_PRESET)

    def handle(self, *_: Any, **options: Any) -> None:
        self.stdout.write(tunables_table(preset_named(options["preset"]).defaults))


def tunables_table(config: PresetConfig) -> str:
    """Return the Markdown table of a configuration's settings."""
    own = config.values()
    rows = ["| tunable | default | range | costs | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n".join(rows + [_row(facts, own[facts.name]) for facts in config.declared_below()])


def _row(facts: TunableFacts, value: float) -> str:
    unit = f" {facts.unit}" if facts.unit else ""
    costs = "yes" if facts.costs else ""
    limits = f"{facts.low:g} to {facts.high:g}" + (f", at most `{facts.at_most}`" if facts.at_most else "")
    return f"| `{facts.name}` | {value:g}{unit} | {limits} | {costs} | {facts.help} |"
