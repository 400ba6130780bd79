"""What the preset `contextpack` adds to a search's state: frozen, free of Django."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relevance:
    """What a language model judged of one candidate."""

    #: By the rubric, 0 to 100.
    score: float
    #: Whether the candidate by itself answers the question.
    is_answering: bool
    #: What it rests on, in the document's words: shown with the search, never stored or logged.
    evidence: str = ""
