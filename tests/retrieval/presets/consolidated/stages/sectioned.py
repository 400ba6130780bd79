"""A section asked for, and cross-encoders that do as they are told."""

import time
from dataclasses import replace

from retrieval.engine.types import ScoreType
from retrieval.presets.consolidated.evidence.section_state import SectionAsk, SectionState
from retrieval.presets.consolidated.evidence.sections import Section, SectionSet, SourceType

#: The most believed first.
PRECEDENCE = ("user", "excel", "costar", "pdf")


def ask(*, keep=3, **section):
    """Return a section of a set over four source types; spreadsheets are known as xlsx too."""
    made = Section(name="figures", title="Figures", template="{subject} figures", keep=keep, **section)
    source_types = tuple(SourceType(name, ("xlsx",) if name == "excel" else ()) for name in PRECEDENCE)
    section_set = SectionSet(name="memo", title="Memo", source_types=source_types, sections=(made,))
    return SectionAsk(section_set=section_set, section=made)


def sectioned(state, hits, *, keep=3, policy=None, **known):
    """Return a search for a section that has found these hits."""
    section = SectionState(ask=ask(keep=keep, **(policy or {})), **known)
    return replace(state, hits=tuple(hits), parts=state.parts_with(section), top_k=keep)


class CrossEncoder:
    """Scores each text by the number that it ends with; `does` may raise, wait or answer something else first."""

    name = "numbers"
    problem = ""

    def __init__(self, *, score_type=ScoreType.RELEVANCE, blend_weight=None):
        self.score_type = score_type
        self.blend_weight = blend_weight
        #: Called with the texts; what it returns, if anything, is the answer.
        self.does = lambda texts: None  # noqa: ARG005
        self.calls = []

    def score(self, query, texts, *, timeout_seconds):
        self.calls.append((query, list(texts), timeout_seconds))
        answer = self.does(texts)
        return [float(text.rsplit(" ", 1)[1]) / 100 for text in texts] if answer is None else answer


def failing(error):
    """Return what raises the error."""

    def fail(_):
        raise error

    return fail


def taking(clock, seconds, then=None):
    """Return what takes so long on a clock that moves only when told."""

    def take(texts):
        clock.now += seconds
        return then(texts) if then else None

    return take


def sleeping(seconds):
    """Return what really takes so long, whatever it was allowed."""

    def sleep(_):
        time.sleep(seconds)

    return sleep
