"""Searching for rephrasings of the question too."""

from dataclasses import dataclass, replace
from typing import ClassVar

from corecube.errors import CoreCubeError
from retrieval.engine.about import About, BaseStage, StageGroup
from retrieval.engine.pipeline import Legs, Pipeline, Stage
from retrieval.engine.query import read_query
from retrieval.engine.state import Note, SearchState
from retrieval.errors import PipelineError
from retrieval.ranking.fusion import variant_leg
from retrieval.ranking.signals import VARIANTS
from retrieval.stages.embed import Embed

_READING = frozenset({"terms", "vector"})  #: Fields of the state that are computed again for each text.


@dataclass(frozen=True, slots=True)
class Variants(BaseStage, name="variants", needs={"rankings", "scope"}, gives={"rankings"}):
    """Runs the legs for each text and adds their rankings to those of the question."""

    texts: tuple[str, ...]
    reading: tuple[Stage, ...]  #: The stages of the pipeline that analyze a text, and the legs that search for it.
    legs: Legs
    characters: int

    about: ClassVar[About] = About(
        "variants",
        "Runs the legs for rephrased questions that a language model wrote before the search.",
        group=StageGroup.FIND,
    )

    def __call__(self, state: SearchState) -> SearchState:
        """Return the state with the rankings of every text: "dense_2" is that of `dense` for the first text.

        Texts are searched while there is time; one that fails is skipped with a note.
        """
        rankings, searched, notes = dict(state.rankings), 0, dict[Note, None]()
        blank = replace(state, rankings={}, vector=None, notes=(), trace=())
        for number, text in enumerate(self.texts, start=2):
            if state.deadline.is_soft:
                break
            try:
                found = replace(blank, query=read_query(text, characters=self.characters))
                for stage in (*self.reading, self.legs):
                    found = stage(found)
            except CoreCubeError:
                notes[Note("variant_failed", "A rephrasing could not be searched.", degraded=True)] = None
                continue
            # Without their signals, which belong to the other text.
            rankings |= {
                variant_leg(leg, number): tuple(replace(hit, signals={VARIANTS: 1.0}) for hit in ranking)
                for leg, ranking in found.rankings.items()
            }
            left = (*found.notes, *(note for span in found.trace for note in span.notes))
            notes |= dict.fromkeys(note for note in left if note.degraded)
            searched += 1
        quoted = "; ".join(f"\N{LEFT DOUBLE QUOTATION MARK}{it}\N{RIGHT DOUBLE QUOTATION MARK}" for it in self.texts)
        note = Note("variants", f"Searched {searched} of {len(self.texts)} rephrasings: {quoted}")
        return replace(state, rankings=rankings).noted(note, *notes)


def with_variants(pipeline: Pipeline, texts: tuple[str, ...], *, characters: int) -> Pipeline:
    """Return the pipeline with a stage behind its legs that searches for these texts; unchanged without texts.

    Raises PipelineError for a pipeline without legs.
    """
    if not texts:
        return pipeline
    place = next((place for place, stage in enumerate(pipeline.stages) if isinstance(stage, Legs)), None)
    if place is None:
        raise PipelineError("No leg can search for rephrasings.")
    before, legs = pipeline.stages[:place], pipeline.stages[place]
    # What is prefetched is of the question alone.
    reading = tuple(
        replace(stage, ahead=()) if isinstance(stage, Embed) else stage
        for stage in before
        if stage.gives and stage.gives <= _READING
    )
    assert isinstance(legs, Legs)  # noqa: S101 -- what `place` was found by
    return pipeline.inserted(place + 1, Variants(texts, reading, replace(legs, parallel=()), characters))
