"""What a change of the grants does, in a sentence. Free of Django."""

from collections.abc import Mapping

from corecube.reach import ReachChange
from explorer import wording


def reach_words(change: ReachChange) -> str:
    """Return who gains and who loses sight of how many connections."""
    said = " ".join(filter(None, (_side(change.gained, "gain"), _side(change.lost, "lose"))))
    return said or "Nobody sees more or less than before."


def _side(counts: Mapping[str, int], verb: str) -> str:
    """Return "bob gains sight of 2 connections." or "3 people lose sight of up to 4 connections."."""
    if not counts:
        return ""
    limit = max(counts.values())
    if len(counts) == 1:
        return f"{next(iter(counts))} {verb}s sight of {wording.counted(limit, 'connection')}."
    bound = "" if set(counts.values()) == {limit} else "up to "
    return f"{len(counts):,} people {verb} sight of {bound}{wording.counted(limit, 'connection')}."
