"""Other ways to put the question, searched beside it. They are texts by now: whoever wrote them is not asked again."""

from dataclasses import dataclass, replace
from typing import ClassVar

from corecube.errors import CoreCubeError
from retrieval.engine.about import About, StageGroup
from retrieval.engine.pipeline import Legs, Pipeline, Stage
from retrieval.engine.query import read_query
from retrieval.engine.state import Note, SearchState
from retrieval.engine.types import Ranking
from retrieval.errors import PipelineError
from retrieval.ranking.fusion import variant_leg
from retrieval.ranking.signals import VARIANTS
from retrieval.stages.embed import Embed

#: What is read anew of another text before legs can search for it.
_READING = frozenset({"terms", "vector"})


@dataclass(frozen=True, slots=True)
class Variants:
    """Runs the legs for each of some texts, and adds their rankings to the question's own, to be fused with them."""

    texts: tuple[str, ...]
    #: The pipeline's own stages that read a text, and those that search for it, with nothing beside them.
    reading: tuple[Stage, ...]
    legs: Legs
    #: The part of a text that retrieval reads.
    characters: int

    name: ClassVar[str] = "variants"
    needs: ClassVar[frozenset[str]] = frozenset({"rankings", "scope"})
    gives: ClassVar[frozenset[str]] = frozenset({"rankings"})
    optional: ClassVar[bool] = False
    about: ClassVar[About] = About(
        "variants",
        "Runs the legs for other ways to put the question, which a language model wrote before the search.",
        group=StageGroup.FIND,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the rankings of every text: "dense_2" is what `dense` found for the first of them.

        As many texts are searched for as there is time; one that fails is left out, and a note says so.
        """
        rankings, searched, notes = dict(state.rankings), 0, dict[Note, None]()
        for number, text in enumerate(self.texts, start=2):
            if state.deadline.is_soft:
                break
            try:
                found = self._searched(text, state)
            except CoreCubeError:
                notes[Note("variant_failed", "Another way to put it could not be searched for.", degraded=True)] = None
                continue
            rankings |= {variant_leg(leg, number): _marked(ranking) for leg, ranking in found.rankings.items()}
            told = (*found.notes, *(note for span in found.trace for note in span.notes))
            notes |= dict.fromkeys(note for note in told if note.degraded)
            searched += 1
        note = Note("variants", f"Searched {searched} of {len(self.texts)} other ways to put it: {self._told()}")
        return replace(state, rankings=rankings, notes=(*state.notes, note, *notes))

    def _searched(self, text: str, state: SearchState) -> SearchState:
        """Return what the legs find for another text, with the notes and spans of that alone."""
        own = replace(state, query=read_query(text, characters=self.characters), rankings={}, vector=None)
        own = replace(own, notes=(), trace=())
        for stage in self.reading:
            own = stage(own)
        return self.legs(own)

    def _told(self) -> str:
        return "; ".join(f"\N{LEFT DOUBLE QUOTATION MARK}{it}\N{RIGHT DOUBLE QUOTATION MARK}" for it in self.texts)


def _marked(ranking: Ranking) -> Ranking:
    """Return a ranking whose hits say that another text found them; their scores are those of that text, and go."""
    return tuple(replace(hit, signals={VARIANTS: 1.0}) for hit in ranking)


def with_variants(pipeline: Pipeline, texts: tuple[str, ...], *, characters: int) -> Pipeline:
    """Return the pipeline that searches for these texts too, behind its legs; as it is without any.

    Raises PipelineError for a pipeline without legs.
    """
    if not texts:
        return pipeline
    place = next((place for place, stage in enumerate(pipeline.stages) if isinstance(stage, Legs)), None)
    if place is None:
        raise PipelineError("There are no legs that could search for other texts.")
    before, legs = pipeline.stages[:place], pipeline.stages[place]
    reading = tuple(_alone(stage) for stage in before if stage.gives and stage.gives <= _READING)
    assert isinstance(legs, Legs)  # noqa: S101 -- what `place` was found by
    return pipeline.inserted(place + 1, Variants(texts, reading, replace(legs, beside=()), characters))


def _alone(stage: Stage) -> Stage:
    """Return a reading stage that begins nothing beside it: names are looked for in the question alone."""
    return replace(stage, ahead=None) if isinstance(stage, Embed) else stage
