"""Questions by a model on this machine (doc2query); nothing leaves it, and nothing is paid."""

from functools import cache
from pathlib import Path
from threading import BoundedSemaphore
from typing import Final

from django.conf import settings

from corecube.machine import cores
from retrieval.encoders.admission import ingest_slot
from retrieval.encoders.seq2seq import Seq2Seq, load_seq2seq
from retrieval.errors import EncoderError, EnrichError
from retrieval.ingest.enrich.prompts import MAX_QUESTIONS, Place, expansions_in
from retrieval.text.context_line import in_context

#: Runs at once, however many chunks are at work: more would wait for the same cores.
_RUNS: Final = BoundedSemaphore(cores())


def local_questions(model: Seq2Seq, place: Place) -> tuple[str, ...]:
    """Return the questions that the model writes for a chunk under its title and headings; raise EnrichError."""
    text = in_context(place.title, place.heading_path, place.text)
    try:
        with _RUNS, ingest_slot():
            return expansions_in(model.write(text, count=MAX_QUESTIONS))
    except EncoderError as error:
        raise EnrichError(str(error)) from error


def configured_model() -> Seq2Seq | None:
    """Return the model that writes questions, None where none is configured; raise as `load_seq2seq`."""
    name = settings.CORECUBE_ENRICH_QUESTIONS_MODEL
    return _loaded(settings.CORECUBE_MODELS_DIR / name) if name else None


@cache
def _loaded(directory: Path) -> Seq2Seq:
    return load_seq2seq(directory)
