"""What the address of the evidence page asks for."""

from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from django.http import QueryDict

from corecube.sanitise import storable
from retrieval.models.document import id_in

#: Seconds for all sections together: what is offered, and the bounds.
DEFAULT_SECONDS: Final = 30
MIN_SECONDS: Final = 1
MAX_SECONDS: Final = 120
#: Digits of a number of seconds; more cannot be one.
_MAX_DIGITS: Final = 3
#: Documents that one run can be limited to.
_MAX_DOCUMENTS: Final = 50


@dataclass(frozen=True, slots=True)
class EvidenceAsked:
    """What an address asks for."""

    #: Empty for the first one that there is.
    section_set: str
    #: Empty for all.
    section: str
    subject: str
    #: Slugs; none for all.
    compartments: tuple[str, ...]
    documents: tuple[UUID, ...]
    seconds: int
    run_as: str
    #: Looks for documents to limit the run to.
    find: str
    #: Whether the sections are to be searched for.
    runs: bool
    #: Whether the page is to come with what they find, which otherwise follows it.
    whole: bool

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return what a query string asks for; what it cannot mean is left at its default."""
        ids = (id_in(text) for text in query.getlist("document"))
        return cls(
            section_set=query.get("set", ""),
            section=query.get("part", ""),
            subject=query.get("about", ""),
            compartments=tuple(dict.fromkeys(filter(None, query.getlist("in")))),
            documents=tuple(dict.fromkeys(it for it in ids if it))[:_MAX_DOCUMENTS],
            seconds=_seconds(query.get("seconds", "")),
            run_as=query.get("as", ""),
            find=storable(query.get("find", "")).strip(),
            runs=query.get("run") == "1",
            whole=query.get("whole") == "1",
        )


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
        return DEFAULT_SECONDS
    return max(MIN_SECONDS, min(MAX_SECONDS, int(text)))
