"""`manage.py evaluate DIR [--stress HOW]`, `--set SLUG`, `--all DIR [--files DIR ...]`: measure on judged questions."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from tqdm import tqdm

from corecube.access import Principal, user_named
from corecube.commands import DatabaseCommand
from corecube.errors import CoreCubeError
from corecube.models import User
from retrieval.evaluation.datasets import load_dataset
from retrieval.evaluation.question_set import SetResult, measure_cases
from retrieval.evaluation.runner import Evaluation, evaluate
from retrieval.evaluation.side_by_side import collections, side_by_side, table_head, table_row
from retrieval.evaluation.stress import Stress
from retrieval.evaluation.unjudged import without_judge
from retrieval.ingest.run import Progress
from retrieval.models import QuestionSet, Sync
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.search import runtime


class Command(DatabaseCommand):
    """Run every judged query through the production path."""

    help = (
        "Measure a preset on a judged collection in the BEIR layout (corpus.jsonl, queries.jsonl, qrels.tsv), "
        "or on a question set of this installation; or every preset on every collection."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("directory", type=Path, nargs="?")
        what.add_argument("--set", metavar="SLUG", help="a question set")
        what.add_argument("--all", type=Path, metavar="DIR", help="every preset on every collection below a directory")
        parser.add_argument(
            "--files",
            type=Path,
            metavar="DIR",
            action="append",
            default=[],
            help="with --all: a folder of raw files, asked for by its headings; may be said several times, for one "
            "collection of all of them",
        )
        parser.add_argument("--as", metavar="USER", help="with --set: who asks; the first admin unless it is said")
        parser.add_argument("--preset", default=DEFAULT_PRESET)
        parser.add_argument(
            "--stress",
            choices=tuple(Stress),
            type=Stress,
            help="with a directory: typos puts one wrong letter into every name in a question, links puts 20 sentences "
            "into every document that name documents like it",
        )
        parser.add_argument(
            "--judge",
            action="store_true",
            help="let the installation's language model judge candidates where a preset has it do so, at its cost",
        )
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object; with --all one a line, as they come"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            preset_named(options["preset"])
            if options["set"] and options["stress"]:
                raise CommandError("--stress is for a directory.")
            if options["set"]:
                result = _measured_set(options)
                self.stdout.write(json.dumps(_set_json(result)) if options["json"] else _set_table(result))
                return
            if options["files"] and not options["all"]:
                raise CommandError("--files is for --all.")
            with tqdm(unit=" documents", disable=None, file=self.stderr, leave=False) as bar:

                def progress(sync: Sync) -> None:
                    bar.update(sync.seen - bar.n)

                if options["all"]:
                    self._side_by_side(options, progress)
                    return
                dataset = load_dataset(options["directory"])
                evaluation = evaluate(
                    dataset,
                    preset=options["preset"],
                    progress=progress,
                    stress=options["stress"],
                    is_judged=options["judge"],
                )
        except CoreCubeError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(asdict(evaluation)) if options["json"] else _table(evaluation))

    def _side_by_side(self, options: dict[str, Any], progress: Progress) -> None:
        """Measure every preset on every collection and print each row of the table as it comes."""
        found = collections(options["all"], options["files"], progress=progress)
        if not options["json"]:
            self.stdout.write(table_head())
        for evaluation in side_by_side(found, is_judged=options["judge"]):
            self.stdout.write(json.dumps(asdict(evaluation)) if options["json"] else table_row(evaluation))
            self.stdout.flush()


def _measured_set(options: dict[str, Any]) -> SetResult:
    question_set = QuestionSet.objects.filter(slug=options["set"]).first()
    if question_set is None:
        raise CommandError(f"There is no question set {options['set']!r}.")
    name = options["as"]
    user = user_named(name) if name else User.objects.filter(is_active=True, is_staff=True).order_by("pk").first()
    if user is None:
        raise CommandError("There is no admin; say with --as who asks.")
    cases, asker = list(question_set.cases.all()), Principal(user)
    tools = None if options["judge"] else without_judge(runtime.resources())
    return measure_cases(cases, preset=options["preset"], principal=asker, resources=tools)


def _set_json(result: SetResult) -> dict[str, Any]:
    return {
        "preset": result.preset,
        "cases": len(result.cases),
        "measured": result.measured,
        "measures": asdict(result.means),
        "rightly_refused": result.refusals,
        "wrongly_refused": result.wrongly_refused,
    }


def _set_table(result: SetResult) -> str:
    lines = [f"{result.preset}, {len(result.cases)} cases, {result.measured} with judgments", ""]
    for name, value in asdict(result.means).items():
        lines.append(f"  {name:<16} {'-' if value is None else f'{value:.4f}'}")
    lines.append("  {:<16} {} of {}".format("rightly refused", *result.refusals))
    lines.append("  {:<16} {} of {}".format("wrongly refused", *result.wrongly_refused))
    return "\n".join(lines)


def _table(evaluation: Evaluation) -> str:
    cut = f", {evaluation.degraded} of them fell back or were cut short" if evaluation.degraded else ""
    lines = [f"{evaluation.preset} on {evaluation.dataset}, {evaluation.queries} queries{cut}", ""]
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
