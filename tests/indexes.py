"""A second embedding index, by another model."""

from retrieval.index import active, embedding_index
from tests.fakes import HashEncoder


class Other(HashEncoder):
    """The other model."""

    name = "other"


def other_index(monkeypatch):
    """Return an index beside the active one, without vectors; both models can be had."""
    models = {"hash": HashEncoder(), "other": Other(dim=32)}
    monkeypatch.setattr(active, "encoder_of", lambda row: models[row.model])
    return embedding_index.start_index(models["other"], source="local:other", mode="chunk_first")
