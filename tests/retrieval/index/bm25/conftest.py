"""Indexes of a few chunks that no database knows."""

import uuid

import pytest

from retrieval.engine.query import clauses_of, read_query
from retrieval.index.bm25 import schema
from retrieval.index.bm25.question import Composer, Question
from retrieval.index.bm25.reader import Reader
from retrieval.index.bm25.writer import Writer
from retrieval.index.folder import Folder
from retrieval.index.types import ChunkTexts

ABOUT = {"schema": schema.SCHEMA_VERSION, "language": "english", "database": "here"}
WEIGHTS = {schema.BODY: 1.0, schema.TITLE: 0.5, schema.HEADING: 0.25, schema.PLAIN: 1.0, schema.EXACT: 0.75}


def chunk(number, text="", *, connection=1, language="english", title="", headings=(), **facts):
    return ChunkTexts(
        **{"questions": (), "modified_at": None, **facts},
        document_id=uuid.UUID(int=number),
        ordinal=0,
        connection_id=connection,
        language=language,
        title=title,
        heading_path=headings,
        text=text,
    )


class Shelf:
    """An index of chunks, and what is found in it."""

    def __init__(self, path):
        self.folder = Folder(path)
        self.reader = Reader(self.folder)

    def build(self, *chunks, position=1):
        with self.folder.locked() as held:
            assert held
            build = self.folder.begin(ABOUT)
            with Writer(build, "english") as writer:
                writer.add(chunks)
                writer.commit(position)
            self.folder.switch(build)
        return self

    def write(self, *chunks, gone=(), position=2):
        with self.folder.locked(), Writer(self.folder.current, "english") as writer:
            writer.replace([*(it.document_id for it in chunks), *map(uuid.UUID, map("{:032x}".format, gone))], chunks)
            writer.commit(position)

    def question(self, text, *, connections=(1,), size=10, **facts):
        return Question(
            **{"languages": frozenset({"english"}), "weights": WEIGHTS, **facts},
            clauses=clauses_of(read_query(text, characters=500)),
            connection_ids=connections,
            corpus_size=size,
        )

    def scores(self, text, *, depth=100, **facts):
        """Return the score by document number, best first."""
        view = self.reader.view()
        query = Composer(view, self.question(text, **facts)).strict
        return {} if query is None else {it.document_id.int: score for it, score in view.best(query, depth)}


@pytest.fixture
def shelf(tmp_path):
    return Shelf(tmp_path / "bm25")
