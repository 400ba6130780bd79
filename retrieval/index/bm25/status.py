"""How the BM25 index of this machine is: there or not, how large, how far behind the database."""

from dataclasses import dataclass, field
from typing import Final

from django.conf import settings

from retrieval.errors import Bm25UnavailableError
from retrieval.index import outbox
from retrieval.index.bm25.follower import folder, wanted_about
from retrieval.index.bm25.reader import Reader

#: Seconds behind from which somebody should look.
LATE_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Status:
    """The index as it is now."""

    is_kept: bool
    #: Whether searches can read it.
    is_readable: bool = False
    #: Whether it was made from this database and with these settings; another one is about to be built anew.
    is_current: bool = False
    chunks: int = 0
    bytes: int = 0
    #: Transactions up to this one are in it.
    position: int = 0
    lag: outbox.Lag = field(default_factory=lambda: outbox.Lag(0, 0.0))

    @property
    def problem(self) -> str:
        """What is to be said of it; empty when nothing is."""
        if not self.is_kept:
            return ""
        if not self.is_readable:
            return "There is no BM25 index yet that can be read; a worker or `manage.py bm25 follow` builds it."
        if not self.is_current:
            return "It was made from another database or with other settings, and is to be built anew."
        late = self.lag.seconds >= LATE_SECONDS
        return f"It is {self.lag.seconds:.0f} seconds behind: is a worker running on this machine?" if late else ""


def bm25_status() -> Bm25Status:
    """Look at the index and the outbox; a machine that keeps no index has neither looked at."""
    if not settings.CORECUBE_BM25:
        return Bm25Status(is_kept=False)
    where = folder()
    build = where.current
    try:
        view = Reader(where).view()
    except Bm25UnavailableError:
        return Bm25Status(is_kept=True)
    return Bm25Status(
        is_kept=True,
        is_readable=True,
        is_current=build is not None and where.about(build) == wanted_about(),
        chunks=view.chunks,
        bytes=where.size(),
        position=view.position,
        lag=outbox.lag(view.position),
    )
