"""`manage.py evaluate DIR`: measure a preset on a judged collection."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from corecube.errors import CoreCubeError
from retrieval.evaluate.datasets import load_dataset
from retrieval.evaluate.runner import Evaluation, evaluate
from retrieval.models import Sync
from retrieval.presets import DEFAULT_PRESET, preset_named


class Command(BaseCommand):
    """Run every judged query through the production path."""

    help = "Measure a preset on a judged collection in the BEIR layout (corpus.jsonl, queries.jsonl, qrels.tsv)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path)
        parser.add_argument("--preset", default=DEFAULT_PRESET)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            preset_named(options["preset"])
            dataset = load_dataset(options["directory"])
            with tqdm(unit=" documents", disable=None, file=self.stderr, leave=False) as bar:

                def progress(sync: Sync) -> None:
                    bar.update(sync.seen - bar.n)

                evaluation = evaluate(dataset, preset=options["preset"], progress=progress)
        except CoreCubeError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(asdict(evaluation)) if options["json"] else _table(evaluation))


def _table(evaluation: Evaluation) -> str:
    lines = [f"{evaluation.preset} on {evaluation.dataset}, {evaluation.queries} queries", ""]
    columns = {evaluation.preset: evaluation.measures, **evaluation.legs}
    lines += [f"  {'':<10}" + "".join(f" {name:>12}" for name in columns)]
    lines += [
        f"  {measure:<10}" + "".join(f" {values[measure]:>12.4f}" for values in columns.values())
        for measure in evaluation.measures
    ]
    lines += ["", f"  {'ms':<12} {'p50':>8} {'p95':>8} {'p99':>8}"]
    lines += [
        f"  {stage:<12} {row['p50']:>8.2f} {row['p95']:>8.2f} {row['p99']:>8.2f}"
        for stage, row in evaluation.latency_ms.items()
    ]
    return "\n".join(lines)
