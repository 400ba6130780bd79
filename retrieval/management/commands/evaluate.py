"""`manage.py evaluate DIR [--stress HOW]`, `--set SLUG`, `--gate`, `--all DIR [--files DIR ...]`, `--answers FILE`."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError

from corecube.access import Principal, user_named
from corecube.commands import DatabaseCommand
from corecube.database import first_or
from corecube.models import User
from retrieval.evaluation import answers, gates
from retrieval.evaluation.components import Components
from retrieval.evaluation.corpus import encode_asked, ingested_folder
from retrieval.evaluation.datasets import load_dataset
from retrieval.evaluation.question_sets import SetResult, measure_cases
from retrieval.evaluation.run_files import answers_json
from retrieval.evaluation.runner import Evaluation, evaluate, without_judge
from retrieval.evaluation.runs import RunRequest, result_of, run_now
from retrieval.evaluation.side_by_side import collections, side_by_side, table_head, table_row
from retrieval.evaluation.stress import Stress
from retrieval.ingest.run import Progress
from retrieval.models import EvaluationRun, PresetVersion, QuestionSet, Sync
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.search import runtime

_NOTHING: Final = 2  #: The exit code where there is nothing to check.


class Command(DatabaseCommand):
    """Run every judged query through the production path."""

    help = (
        "Measure a preset on a judged collection in the BEIR layout (corpus.jsonl, queries.jsonl, qrels.tsv), "
        "or on a question set of this installation; or a preset's draft on the question sets that guard promotions; or "
        "every preset on every collection; or its answers to questions with known answers."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("directory", type=Path, nargs="?")
        what.add_argument("--set", metavar="SLUG", help="a question set")
        what.add_argument(
            "--gate",
            action="store_true",
            help="the preset's draft against its live version on the gates; exit code 0 if all are passed, 1 if not, "
            "2 if there is nothing to check",
        )
        what.add_argument("--all", type=Path, metavar="DIR", help="every preset on every collection below a directory")
        what.add_argument(
            "--answers",
            type=Path,
            metavar="FILE",
            help="questions with known answers: JSON lines with id, question, kind, collection, answers; or the sample "
            "company's company.toml",
        )
        parser.add_argument(
            "--corpora",
            type=Path,
            metavar="DIR",
            help="with --answers: the folder of the collections (default: ../corpora beside the file)",
        )
        parser.add_argument(
            "--files",
            type=Path,
            metavar="DIR",
            action="append",
            default=[],
            help="with --all: a folder of files, queried by its headings; repeat to combine folders",
        )
        parser.add_argument("--save", metavar="NAME", default="", help="with --set: store the run under a name")
        parser.add_argument(
            "--with-answers",
            action="store_true",
            help="with --save: answer each question as users get it, and measure the answers; models cost the same",
        )
        parser.add_argument("--index", type=int, metavar="N", help="with --save: another complete embedding index")
        parser.add_argument("--no-reranker", action="store_true", help="with --save: leave out the reranker")
        parser.add_argument(
            "--language-model",
            metavar="SLUG",
            default="",
            help="with --save: the language model that judges and answers; extractive for quotes alone",
        )
        parser.add_argument("--as", metavar="USER", help="with --set and --gate: the user (default: the first admin)")
        parser.add_argument("--preset", default=DEFAULT_PRESET)
        parser.add_argument(
            "--stress",
            choices=tuple(Stress),
            type=Stress,
            help="with a directory: typos puts a wrong letter into every name in a query, links adds 20 sentences with "
            "names of similar documents to every document, capitals and lower write documents and queries in one case, "
            "titles gives every tenth document a common word as its title",
        )
        parser.add_argument(
            "--judge",
            action="store_true",
            help="let the installation's language model judge candidates and write answers; this has a cost",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object; with --all one per line")

    def handle(self, *_: Any, **options: Any) -> None:
        preset_named(options["preset"])
        if options["stress"] and not options["directory"]:
            raise CommandError("--stress needs a directory.")
        if not options["save"] and _run_request(options) != RunRequest(options["preset"]):
            raise CommandError("--with-answers, --index, --no-reranker and --language-model need --set and --save.")
        if options["gate"]:
            self._gate(options)
            return
        if options["set"]:
            result = _measured_set(options)
            self.stdout.write(json.dumps(_set_json(result)) if options["json"] else _set_table(result))
            return
        if options["files"] and not options["all"]:
            raise CommandError("--files needs --all.")
        with self.bar("documents") as bar:

            def progress(sync: Sync) -> None:
                bar.update(sync.seen - bar.n)

            if options["all"]:
                self._side_by_side(options, progress)
                return
            if options["answers"]:
                self._answers(options, progress)
                return
            dataset = load_dataset(options["directory"])
            evaluation = evaluate(
                dataset,
                preset=options["preset"],
                progress=progress,
                stress=options["stress"],
                is_judged=options["judge"],
            )
        self.stdout.write(json.dumps(asdict(evaluation)) if options["json"] else _table(evaluation))

    def _gate(self, options: dict[str, Any]) -> None:
        """Measure the runs that the gates need, print what each says, and end with an exit code."""
        preset = preset_named(options["preset"])
        nothing = CommandError("This preset has no draft.", returncode=_NOTHING)
        draft = first_or(nothing, PresetVersion.objects.filter(preset=preset.name, status=PresetVersion.Status.DRAFT))
        results = gates.measure_missing(preset, draft, Principal(_user(options)))
        if not results:
            raise CommandError("This preset has no gate.", returncode=_NOTHING)
        is_passed = gates.are_passed(results)
        if options["json"]:
            found = {"preset": preset.name, "version": draft.number, "passed": is_passed}
            self.stdout.write(json.dumps({**found, "gates": [it.as_json() for it in results]}))
        else:
            lines = (f"{it.verdict:<10} {it.gate.question_set.name}: {it.sentence}" for it in results)
            self.stdout.write("\n".join(lines))
        if not is_passed:
            raise CommandError(f"Version {draft.number} of {preset.name} does not pass its gates.")

    def _side_by_side(self, options: dict[str, Any], progress: Progress) -> None:
        """Measure every preset on every collection and print each row at once."""
        found = collections(options["all"], options["files"], progress=progress)
        if not options["json"]:
            self.stdout.write(table_head())
        for evaluation in side_by_side(found, is_judged=options["judge"]):
            self.stdout.write(json.dumps(asdict(evaluation)) if options["json"] else table_row(evaluation))
            self.stdout.flush()

    def _answers(self, options: dict[str, Any], progress: Progress) -> None:
        path = options["answers"]
        questions = answers.load_questions(path)
        corpora = options["corpora"] or path.resolve().parent.parent / "corpora"
        folders = {it.collection: corpora / it.collection for it in questions if it.collection}
        if missing := [folder for folder in folders.values() if not folder.is_dir()]:
            raise CommandError(f"There is no folder {missing[0]}: name the collections' folder with --corpora.")
        connections = {name: ingested_folder(folder, progress) for name, folder in folders.items()}
        encode_asked(connections, {it.collection for it in questions})
        found = answers.measured_answers(questions, connections, preset=options["preset"], uses_models=options["judge"])
        figures = answers.figures(options["preset"], found)
        self.stdout.write(json.dumps(figures) if options["json"] else _answers_table(figures))


def _answers_table(figures: dict[str, Any]) -> str:
    measures, latency = figures["measures"], figures["latency_ms"]
    groups = {**figures["kinds"], **figures["collections"]}
    columns = ("questions", "right", "wrong", "hedged", "refused")
    return "\n".join(
        [
            f"{figures['preset']}, {figures['questions']} questions\n",
            *(f"  {name:<26} {'-' if value is None else f'{value:.4f}'}" for name, value in measures.items()),
            f"  {'latency, ms':<26} p50 {latency['p50']:.0f}, p95 {latency['p95']:.0f}",
            f"\n  {'':<20}" + "".join(f"{name:>10}" for name in columns),
            *(
                f"  {name or 'samples':<20}" + "".join(f"{row[column]:>10}" for column in columns)
                for name, row in groups.items()
            ),
        ]
    )


def _user(options: dict[str, Any]) -> User:
    nobody = CommandError("There is no admin: name a user with --as.")
    admins = User.objects.filter(is_active=True, is_staff=True).order_by("pk")
    return user_named(options["as"]) if options["as"] else first_or(nobody, admins)


def _measured_set(options: dict[str, Any]) -> SetResult:
    unknown = CommandError(f"There is no question set {options['set']!r}.")
    question_set = first_or(unknown, QuestionSet.objects.filter(slug=options["set"]))
    user = _user(options)
    resources = None if options["judge"] else without_judge(runtime.resources())
    if options["save"]:
        run = run_now(question_set, _run_request(options), principal=Principal(user))
        if run.status != EvaluationRun.Status.DONE:
            raise CommandError(run.message)
        return result_of(run)
    cases = list(question_set.cases.all())
    return measure_cases(cases, preset=options["preset"], principal=Principal(user), resources=resources)


def _run_request(options: dict[str, Any]) -> RunRequest:
    return RunRequest(
        options["preset"],
        name=options["save"],
        has_answers=options["with_answers"],
        components=Components(options["index"], not options["no_reranker"], options["language_model"]),
    )


def _set_json(result: SetResult) -> dict[str, Any]:
    return {
        "preset": result.preset,
        "cases": len(result.cases),
        "measured": result.measured,
        "measures": asdict(result.means),
        "rightly_refused": result.refusals,
        "wrongly_refused": result.wrongly_refused,
        "answers": answers_json(result) if result.answers else None,
        "cost": float(result.spent.cost),
    }


def _set_table(result: SetResult) -> str:
    means = {**asdict(result.means), **(asdict(result.answer_means) if result.answers else {})}.items()
    return "\n".join(
        [
            f"{result.preset}, {len(result.cases)} cases, {result.measured} with judgments\n",
            *(f"  {name:<20} {'-' if value is None else f'{value:.4f}'}" for name, value in means),
            "  {:<20} {} of {}".format("correctly refused", *result.refusals),
            "  {:<20} {} of {}".format("wrongly refused", *result.wrongly_refused),
        ]
    )


def _table(evaluation: Evaluation) -> str:
    degraded = f", {evaluation.degraded} of them degraded" if evaluation.degraded else ""
    columns = {evaluation.preset: evaluation.measures, **evaluation.legs}
    return "\n".join(
        [
            f"{evaluation.preset} on {evaluation.dataset}, {evaluation.queries} queries{degraded}\n",
            f"  {'':<10}" + "".join(f" {name:>12}" for name in columns),
            *(
                f"  {measure:<10}" + "".join(f" {values[measure]:>12.4f}" for values in columns.values())
                for measure in evaluation.measures
            ),
            f"\n  {'ms':<12} {'p50':>8} {'p95':>8} {'p99':>8}",
            *(
                f"  {stage:<12} {row['p50']:>8.2f} {row['p95']:>8.2f} {row['p99']:>8.2f}"
                for stage, row in evaluation.latency_ms.items()
            ),
        ]
    )
