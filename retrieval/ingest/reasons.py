"""Why items are not indexed: which reasons are transient, and what a person can do about the others.

Connectors, parsers and workers give each failure one of these stable reasons.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final


class Retry(Enum):
    """Whether another try can help while the source stays unchanged."""

    #: Workers try again; after their last try a person may.
    AUTOMATIC = "automatic"
    #: It may help, for instance after a change of this installation; a person decides.
    BY_HAND = "by_hand"
    #: Only a change in the source helps, and the next sync finds it.
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Failure:
    """Whether to retry after a failure, and what helps."""

    retry: Retry
    #: What helps, as a sentence; empty where the message contains it.
    advice: str = ""


_AUTOMATIC: Final = (
    ("unreachable", "Check the network between this server and the source."),
    ("timeout", ""),
    ("unavailable", ""),
    ("embedding", "Check the embedding model on the Health page."),
    ("parser", "Check the memory of the machine that the worker runs on."),
)
_BY_HAND: Final = (
    ("too_slow", "Raise CORECUBE_PARSE_SECONDS or split the file, then try again."),
    ("lost", "Check the memory of the machine that the worker runs on, then try again."),
    ("error", "Check the worker's log for this time."),
)
_NEVER: Final = (
    ("archived", "Restore the object and sync again."),
    ("bad_address", "Correct the address in the source or in the connection and sync again."),
    ("bad_name", "Rename the item and sync again."),
    ("corrupt", "Replace the file with one that opens and sync again."),
    ("duplicate", "Give each item its own id and sync again."),
    ("empty", "Add text to the file, or exclude it from the connection."),
    ("encoding", "Save the file as UTF-8 and sync again."),
    ("encrypted", "Remove the password and sync again."),
    ("gone", "The source no longer has it; the next sync removes it."),
    ("left_out", "Change the connection's patterns and sync again."),
    ("lfs_pointer", "Commit the file itself to the repository, or exclude it from the connection."),
    ("no_text", "Run text recognition (OCR) on the scan and sync again."),
    ("not_allowed", "Move the file below one of CORECUBE_FOLDER_ROOTS, or exclude it from the connection."),
    ("not_a_file", "Exclude it from the connection."),
    ("page_limit", "Raise the connection's page limit and sync again."),
    ("private_address", "Only public internet addresses are fetched; exclude it from the connection."),
    ("redirect", "Correct the address in the source and sync again."),
    ("refused", "Grant the connection's account access to it and sync again."),
    ("restricted", "Allow restricted pages in the connection, or ignore this problem."),
    ("submodule", ""),
    ("symlink", "Replace the link with the file itself and sync again."),
    ("too_large", "Split the file and sync again, or raise the limit if the message names a setting."),
    ("unreadable", "Allow CoreCube to read it and sync again."),
    ("unsupported_type", "Save it in a supported format, or exclude it from the connection."),
)
FAILURES: Final[Mapping[str, Failure]] = MappingProxyType(
    {
        **{reason: Failure(Retry.AUTOMATIC, advice) for reason, advice in _AUTOMATIC},
        **{reason: Failure(Retry.BY_HAND, advice) for reason, advice in _BY_HAND},
        **{reason: Failure(Retry.NEVER, advice) for reason, advice in _NEVER},
    }
)
#: An older release may have stored a reason that no longer exists.
_UNKNOWN: Final = Failure(Retry.BY_HAND)
#: Reasons that may disappear without a change: the network, a server that is down or busy.
TRANSIENT: Final = frozenset(dict(_AUTOMATIC))
#: Reasons that only a change in the source removes.
PERMANENT: Final = frozenset(dict(_NEVER))


def advice(reason: str) -> str:
    """Return what a person can do about a failure; empty when only its message helps."""
    return FAILURES.get(reason, _UNKNOWN).advice
