"""`manage.py calibrate`: fit the answerability model on the installation's own questions, or measure it."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from corecube.access import Principal, user_named
from corecube.commands import DatabaseCommand
from retrieval.errors import ReferenceVersionError
from retrieval.evaluation import answerability_report as report
from retrieval.evaluation import shipped_fit
from retrieval.evaluation.answerability import Survey, survey
from retrieval.evaluation.answers import load_questions
from retrieval.evaluation.calibration_fit import calibrated, observe, read_questions
from retrieval.evaluation.corpus import encode_asked, ingested_folder
from retrieval.evaluation.datasets import load_dataset
from retrieval.index import active
from retrieval.presets.catalog import DEFAULT_PRESET, preset_named
from retrieval.ranking.answerability.model import shipped
from retrieval.search import calibrations


class Command(DatabaseCommand):
    """Fit, show, reset or measure the confidence of answerability."""

    help = (
        "Calibrate the answerability confidence on judged questions: a file of JSON lines"
        ' {"question": ..., "answerable": true|false, "user": ...}, or a judged collection in the BEIR layout.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("questions", type=Path, nargs="?", help="judged questions")
        parser.add_argument("--preset", default=DEFAULT_PRESET)
        parser.add_argument("--as", dest="user", default="", help="user for questions that name none")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        only = parser.add_mutually_exclusive_group()
        only.add_argument("--dry-run", action="store_true", help="fit and print, but store nothing")
        only.add_argument("--show", action="store_true", help="print the calibration in use")
        only.add_argument("--reset", action="store_true", help="return to the shipped model")
        only.add_argument(
            "--shipped",
            type=Path,
            nargs="+",
            metavar="FILE",
            help="fit the models that come with CoreCube on questions with known answers, as evaluate --answers reads "
            "them, and on --measure, and print them; stores nothing",
        )
        parser.add_argument("--corpora", type=Path, metavar="DIR", help="with --shipped: the folder of the collections")
        measuring = parser.add_argument_group("measuring")
        measuring.add_argument("--measure", type=Path, metavar="DIR", help="measure on a judged collection instead")
        measuring.add_argument("--other", type=Path, nargs="*", default=[], metavar="DIR", help="other topics")
        measuring.add_argument("--unseen", type=Path, metavar="DIR", help="a collection to test on, not used to fit")
        measuring.add_argument("--questions-each", type=int, default=700, metavar="N", help="maximum of each kind")
        measuring.add_argument("--keep", action="store_true", help="keep the collections in the database")

    def handle(self, *_: Any, **options: Any) -> None:
        if preset_named(options["preset"]).lines:
            raise ReferenceVersionError("A reference version uses the calibration of its preset.")
        if options["show"]:
            self._show(options)
        elif options["reset"]:
            self._reset(options)
        elif options["shipped"]:
            self._fit_shipped(options)
        elif options["measure"]:
            self._measure(options)
        else:
            self._calibrate(options)

    def _calibrate(self, options: dict[str, Any]) -> None:
        if options["questions"] is None:
            raise CommandError("Name a file of judged questions, or --show, --reset or --measure DIR.")
        preset: str = options["preset"]
        questions = read_questions(options["questions"])
        user = user_named(options["user"]) if options["user"] else None
        with self.bar("questions") as bar:
            observed = observe(
                questions, preset=preset, principal=Principal(user) if user else None, progress=bar.update
            )
        prior = shipped(active.encoder().name)
        model, figures = calibrated(observed, prior=prior, asked=len(questions))
        if not options["dry_run"]:
            calibrations.store(
                model,
                preset=preset,
                encoder=active.encoder(),
                figures=figures,
                source=options["questions"].name,
                actor=user,
            )
        self._print(figures, report.calibration(figures, stored=not options["dry_run"]), options)

    def _show(self, options: dict[str, Any]) -> None:
        row = calibrations.active_calibration(options["preset"])
        if row is None:
            self._print(None, "No calibration: the shipped model is in use, without calibration.", options)
            return
        facts = {"source": row.source, "encoder": row.encoder, "at": row.created_at.isoformat(), **row.figures}
        in_use = row.encoder == calibrations.encoder_identity(active.encoder())
        use = "in use" if in_use else "not in use: it was fitted with another embedding model"
        self._print(
            {**facts, "in_use": in_use},
            f"Calibrated on {facts['source']} at {facts['at']}, {facts['encoder']}: {use}\n"
            f"{facts['answerable']} answerable and {facts['not_answerable']} not answerable questions,"
            f" AUROC {facts['auroc']:.3f}, ECE {facts['ece']:.3f}",
            options,
        )

    def _reset(self, options: dict[str, Any]) -> None:
        was = calibrations.reset(options["preset"], actor=None)
        text = "The shipped model is in use again." if was else "There was no calibration."
        self._print({"reset": was}, text, options)

    def _measure(self, options: dict[str, Any]) -> None:
        with self.bar("steps") as bar:
            how = Survey(preset=options["preset"], max_questions=options["questions_each"], progress=bar.update)
            result = report.measure(
                options["measure"], options["other"], options["unseen"], how=how, keep=options["keep"]
            )
        self._print(result, report.table(result), options)

    def _fit_shipped(self, options: dict[str, Any]) -> None:
        if not (options["measure"] and options["corpora"]):
            raise CommandError("--shipped needs --corpora and --measure.")
        questions = [it for path in options["shipped"] for it in load_questions(path)]
        names = sorted({it.collection for it in questions} - {""})
        connections = {name: ingested_folder(options["corpora"] / name, lambda _: None) for name in names}
        encode_asked(connections, {it.collection for it in questions})
        with self.bar("questions") as bar:
            searches = shipped_fit.ask_all(questions, connections, preset=options["preset"], progress=bar.update)
            how = Survey(preset=options["preset"], max_questions=options["questions_each"], progress=bar.update)
            others = [load_dataset(path) for path in options["other"]]
            judged = survey(load_dataset(options["measure"]), others, how).measured
        facts = shipped_fit.report(searches, judged)
        self.stdout.write(json.dumps(facts, indent=1))

    def _print(self, facts: object, text: str, options: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(facts) if options["json"] else text)
