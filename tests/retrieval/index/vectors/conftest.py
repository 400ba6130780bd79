"""Vector files of a few chunks that no database knows."""

import uuid

import numpy as np
import pytest

from retrieval.engine.types import ChunkId
from retrieval.index.folder import Folder
from retrieval.index.vectors.files import SCHEMA_VERSION
from retrieval.index.vectors.reader import Reader
from retrieval.index.vectors.writer import Writer

DIM = 8
ABOUT = {"schema": SCHEMA_VERSION, "index": 1, "dim": DIM, "database": "here"}


def chunk_id(number, ordinal=0):
    return ChunkId(uuid.UUID(int=number), ordinal)


def units(count, *, dim=DIM, seed=0):
    """Return random unit vectors."""
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Shelf:
    """Vector files, and what is found in them."""

    def __init__(self, path):
        self.folder = Folder(path)
        self.reader = Reader(self.folder)

    def build(self, about=ABOUT):
        """Make an empty build."""
        with self.folder.locked() as is_locked:
            assert is_locked
            build = self.folder.begin(about)
            Writer(build, about["dim"]).commit(1)
            self.folder.switch(build)
        return self

    def writer(self, dim=DIM):
        return Writer(self.folder.current, dim)

    def put(self, number, vectors, *, connection=1, position=2):
        """Replace a document's chunks, and commit."""
        writer = self.writer()
        writer.remove([uuid.UUID(int=number)])
        writer.add(connection, [chunk_id(number, place) for place in range(len(vectors))], vectors)
        writer.commit(position)

    def nearest(self, vector, connections=(1,), count=10):
        """Return the (document's number, ordinal) of the nearest chunks, in order."""
        return self.ids(self.reader.view().nearest(vector, connections, count))

    def ids(self, found):
        documents = [uuid.UUID(it).int for it in found.documents.strip("{}").split(",") if it]
        return sorted(zip(documents, found.ordinals, strict=True))

    def held(self, dim=DIM):
        """Return all chunks by connection: one that is there twice shows."""
        view = self.reader.view()
        return {key: self.ids(view.nearest(units(1, dim=dim)[0], [key], 10_000)) for key in view.files}


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "vectors")
