"""Every statement of the index, in each form that searches and workers send it in, with parameters that fit it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from retrieval.engine.state import MetadataFilter, RequestFilter
from retrieval.index import statements
from retrieval.index.encodings import Encodings
from retrieval.index.filters import filtered
from retrieval.index.scans import create_statement, dense_statement
from retrieval.index.statements import Reach, statement
from retrieval.models import EmbeddingIndex

SQL = Path(statements.__file__).parent / "sql"
NAMES = sorted(
    str(it.relative_to(SQL).with_suffix("")) for folder in (".", "upkeep") for it in (SQL / folder).glob("*.sql")
)
_NOW = datetime(2026, 1, 2, tzinfo=UTC)
#: Each way in which a request's filter changes a statement.
FILTERS = (
    RequestFilter(),
    RequestFilter(since=_NOW, until=_NOW, project="x", memory_types=frozenset({"fact"})),
    RequestFilter(documents=frozenset({UUID(int=1)}), source_types=frozenset({"text"})),
    RequestFilter(min_quality=0.3, hint="table"),
    RequestFilter(metadata=MetadataFilter((*statements._OWN_FACTS, "owner"), ("[]",))),
)
_FULLTEXT = ("fulltext", "fulltext_capped")
_DENSE = {"dense_hnsw": "halfvec", "dense_int8": "int8", "dense_binary": "binary", "dense_prefix": "prefix"}
#: Statements that a request's filter is added to, with what they call a document.
_FILTERED = {
    **dict.fromkeys((*_FULLTEXT, *_DENSE, "dense_exact", "sparse_exact", "sparse_hnsw", "headings"), ""),
    **dict.fromkeys(("filter_holds", "scope_chunks"), ""),
    **dict.fromkeys(("complete", "source_probe", "passing_chunks"), "chunk.document_id"),
    "scope_documents": "listed.id",
}
_SPARSE = ("sparse_exact", "sparse_hnsw", "upkeep/insert_sparse")
_CREATE = {
    f"upkeep/create_hnsw{it}": scan
    for it, scan in (("", "halfvec"), ("_int8", "int8"), ("_binary", "binary"), ("_prefix", "prefix"))
}


@dataclass(frozen=True)
class Sample:
    """What the parameters name: two chunks that are there, their connection, and the embedding index."""

    chunks: tuple[tuple[UUID, int], ...]
    connections: list[int]
    index: EmbeddingIndex
    key: int  #: Of a name.

    @property
    def parameters(self) -> dict[str, Any]:
        """A value for each parameter of any statement."""
        documents, ordinals = [it[0] for it in self.chunks], [it[1] for it in self.chunks]
        dense = f"[{','.join(['0.1'] * self.index.dim)}]"
        return {
            "documents": documents,
            "ordinals": ordinals,
            "scope": self.connections,
            "connections": self.connections,
            "memories": self.connections,
            "chunk_documents": documents,
            "chunk_ordinals": ordinals,
            "begun": documents,
            "changed": documents,
            "starts": [0, 0],
            "ends": [9, 9],
            "document": documents[0],
            "ordinal": ordinals[0],
            "connection": self.connections[0],
            "after": UUID(int=0),
            "vector": dense,
            "question": dense,
            "relation": dense,
            "index": self.index.pk,
            "source": self.index.pk,
            "dim": self.index.dim,
            "scan_dim": 16,
            "candidates": 20,
            "depth": 10,
            "limit": 50,
            "model": 1,
            "match": "'the' | 'staging'",
            "cover": None,
            "weights": [0.1, 0.5, 0.7, 1.0],
            "saturation": 0.2,
            "terms": ["'staging'", "'queue'"],
            "in_title": ["'staging':A", "'queue':A"],
            "in_heading": ["'staging':B", "'queue':B"],
            "idfs": [1.0, 2.0],
            "until": UUID(int=2**127),
            "term_1": "'staging'",
            "idf_1": 1.0,
            "term_2": "'queue'",
            "idf_2": 2.0,
            "text": "staging queue",
            "words": ["staging", "the"],
            "operators": "staging -queue",
            "languages": ["english", "simple"],
            "keys": [self.key, 2, 3],
            "searched": 100,
            "leading": 4,
            "phrases": [self.key, 2, 3],
            "sharing": 8,
            "holders": 25,
            "sample": 5,
            "sampled": self.connections,
            "min_quality": 0.1,
            "parents": True,
            "same_page": 2,
            "cross_page": 2,
            "source_types": ["text"],
            "max_changed": 10,
            "position": 0,
            "before": 2**62,
            "minimum": 2,
            "penalty": 0.8,
            "fingerprint": "",
            "context_line": "",
            "replaces": True,
            "fact_1": "title",
            "fact_2": "owner",
            "numbers": [self.index.pk],
            "names": ["retrieval_chunk"],
            "sign": 1,
            "deleted": False,
            "moments": [_NOW, _NOW],
            "times": [1, 1],
            "values": [0.5, 0.6],
            "key": 77,
            "name": "x",
            "kind": "title",
            "quality": 1.0,
            "phrases_count": 1,
            "content_hash": "",
            "vectors": b"",
            "asked": "why",
            "heading_path": [],
            "title": "",
            "questions": [],
            "triples": "[]",
            "config": "english",
            "sentence": "",
            "quality_parts": "{}",
            "simhash": 0,
            "language": "english",
            "hints": [],
            "minhash": b"",
            "links": "[]",
            "headings": "",
            "token_count": 1,
            "page_start": None,
            "page_end": None,
            "row_start": None,
            "row_end": None,
            "section_start": 0,
            "section_end": 0,
            "since": _NOW,
            "compartments": f"[{self.connections}]",
        }


_OWN: dict[str, dict[str, Any]] = {
    "graph_common": {"phrase": "the queue", "language": "english"},
    "scope_documents": {},
    "upkeep/insert_mentions": {"phrases": 1, "ordinal": 999},
    "upkeep/insert_chunk": {"ordinal": 999},
    "upkeep/insert_embedding": {"ordinal": 999},
    "upkeep/outbox_entries": {"after": 0},
    "upkeep/outbox_waiting": {"after": 0},
    "upkeep/prune_outbox": {"until": 2**62},
    "upkeep/insert_link": {"kind": "link"},
}


def forms(name: str, sample: Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each text of a statement with its parameters."""
    given = sample.parameters | _OWN.get(name, {})
    if name in _SPARSE:
        given["vector"] = "{1:0.5,2:0.25}/100"
        given["dim"] = 100
    for sql in _texts(name, sample.index):
        document = _FILTERED.get(name)
        if document is None:
            yield sql, given
            continue
        for it in FILTERS:
            # Documents have neither hints nor a quality.
            kept = replace(it, hint="", min_quality=0.0) if name == "scope_documents" else it
            yield filtered(sql, given, kept, document=document)
    if name in {"source_probe", "routed_chunks", "probe"}:
        yield next(iter(_texts(name, sample.index))), given | {"vector": None}
    if name == "upkeep/outbox_mark":
        yield statement(name), given | {"before": None}


def _texts(name: str, index: EmbeddingIndex) -> Iterator[str]:
    if name == "complete":
        yield from (statements.COMPLETE, statements.COMPLETE_WITH_VECTORS, statements.COMPLETE_WITHOUT_COSINES)
    elif name in _DENSE:
        yield dense_statement(_DENSE[name], index.dim)
    elif name in _CREATE:
        yield create_statement(_CREATE[name], index=index.pk, dim=index.dim, scan_dim=16)
    elif name == "upkeep/create_hnsw_sparse":
        yield statement(name) % {"model": 1, "dim": 100}
    elif name == "upkeep/drop_hnsw":
        yield statement(name) % {"index": index.pk}
    elif name == "fact_values":
        yield from (
            statements.with_facts(statement(name), names) for names in (("owner", "x"), tuple(statements._OWN_FACTS))
        )
    elif name == "fulltext":
        yield from (statements.fulltext(2, reach) for reach in Reach)
        yield statements.fulltext(2, by_cover=True)
    elif "{score}" in statement(name):
        yield from (statements.scored(statement(name), 2, by_cover=by_cover) for by_cover in (False, True))
    elif "{table}" in statement(name):
        kinds = [it for it in Encodings if "sparse" not in it or "vectors" not in statement(name)]
        yield from (statement(name).replace("{table}", kind.table) for kind in kinds)
    else:
        yield statement(name)
