"""Why items are not taken in: which reasons may pass by themselves, and what a person can do about the others.

Connectors, parsers and workers give a failure one of these stable words; what follows from a word is said here alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Retry(Enum):
    """Whether trying the same item again can help while its source stays as it is."""

    #: Workers try it again by themselves; after the last of these tries a person may.
    AUTOMATIC = "automatic"
    #: It may help, for instance after a change of this installation; a person decides.
    BY_HAND = "by_hand"
    #: Only a change in the source helps, and then a sync takes the item up.
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Failure:
    """What follows from one reason."""

    retry: Retry
    #: What helps, as a sentence; empty where the message says it already.
    advice: str = ""


_PASSING: Final = (
    ("unreachable", "Check the network between this server and the source."),
    ("timeout", ""),
    ("unavailable", ""),
    ("embedding", "Check the embedding model on the page Health."),
    ("parser", "Check the memory of the machine that the worker runs on."),
)
_BY_HAND: Final = (
    ("too_slow", "Raise CORECUBE_PARSE_SECONDS or split the file, then try again."),
    ("lost", "Check the memory of the machine that the worker runs on, then try again."),
    ("error", "Look for this moment in the worker's log."),
)
_LASTING: Final = (
    ("archived", "Restore the object and sync again."),
    ("bad_address", "Correct the address in the source or in the connection and sync again."),
    ("bad_name", "Rename the item and sync again."),
    ("corrupt", "Replace the file with one that opens and sync again."),
    ("duplicate", "Give each item its own id and sync again."),
    ("empty", "Add text to the file, or exclude it from the connection."),
    ("encoding", "Save the file as UTF-8 and sync again."),
    ("encrypted", "Remove the password and sync again."),
    ("gone", "It is no longer in the source; the next sync removes it."),
    ("left_out", "Change the connection's patterns and sync again."),
    ("lfs_pointer", "Commit the file itself to the repository, or exclude it from the connection."),
    ("no_text", "Recognise the text of the scan (OCR) and sync again."),
    ("not_allowed", "Put the file below one of CORECUBE_FOLDER_ROOTS, or exclude it from the connection."),
    ("not_a_file", "Exclude it from the connection."),
    ("page_limit", "Raise the connection's limit of pages and sync again."),
    ("private_address", "Only addresses on the public internet are fetched; exclude it from the connection."),
    ("redirect", "Correct the address in the source and sync again."),
    ("refused", "Give the connection's account access to it and sync again."),
    ("restricted", "Let the connection take in restricted pages, or leave it as it is."),
    ("submodule", ""),
    ("symlink", "Put the file itself in the place of the link and sync again."),
    ("too_large", "Split the file and sync again, or raise the limit if the message names one of yours."),
    ("unreadable", "Allow CoreCube to read it and sync again."),
    ("unsupported_type", "Save it in a format that is read, or exclude it from the connection."),
)
FAILURES: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        **{reason: Failure(Retry.AUTOMATIC, advice) for reason, advice in _PASSING},
        **{reason: Failure(Retry.BY_HAND, advice) for reason, advice in _BY_HAND},
        **{reason: Failure(Retry.NEVER, advice) for reason, advice in _LASTING},
    }
)
#: An older release may have stored a reason that is gone since.
_UNKNOWN: Final = Failure(Retry.BY_HAND)
#: What may be better in a moment: the network, a server that is down or busy.
TRANSIENT: Final = frozenset(reason for reason, it in FAILURES.items() if it.retry is Retry.AUTOMATIC)
#: What stays as it is until the source changes.
PERMANENT: Final = frozenset(reason for reason, it in FAILURES.items() if it.retry is Retry.NEVER)


def advice(reason: str) -> str:
    """Return what a person can do about a failure; empty where only its message helps."""
    return FAILURES.get(reason, _UNKNOWN).advice
