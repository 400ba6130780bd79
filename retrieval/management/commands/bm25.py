"""`manage.py bm25`: the BM25 index of this machine."""

from typing import ClassVar

from retrieval.index.bm25.follower import Bm25Follower, follower
from retrieval.management.commands._read_model import ReadModelCommand


class Command(ReadModelCommand):
    """Show, update, check or rebuild the BM25 index of this machine."""

    setting: ClassVar[str] = "CORECUBE_BM25"

    def follower(self) -> Bm25Follower:
        return follower()
