"""`manage.py vectors`: the vector files of this machine."""

from typing import ClassVar

from retrieval.index.vectors.follower import VectorFollower, follower
from retrieval.management.commands._read_model import ReadModelCommand


class Command(ReadModelCommand):
    """Show, update, check or rebuild the vector files of this machine."""

    setting: ClassVar[str] = "CORECUBE_VECTORS"

    def follower(self) -> VectorFollower:
        return follower()
