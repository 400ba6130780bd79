"""The embedding index that is searched, and the model that made its vectors."""

from retrieval.encoders import Encoder, embedders
from retrieval.errors import ModelMissingError
from retrieval.index.embedding_index import active_row, same_model
from retrieval.index.store import VectorIndex
from retrieval.models import EmbeddingIndex


def encoder(row: EmbeddingIndex | None = None) -> Encoder:
    """Return the model that searches use: the active index's, and the configured one while there is none.

    `row` is the active index where it has been read already. Raises ModelMissingError when the model is not on this
    machine, ConfigError when the settings do not describe it.
    """
    row = row or active_row()
    return embedders.choices().configured().load() if row is None else encoder_of(row)


def encoder_of(row: EmbeddingIndex) -> Encoder:
    """Return the model that made an index's vectors; raise as `encoder` does, and ConfigError for other weights."""
    found = embedders.of_index(row).load()
    same_model(row, found)
    return found


def active_index(model: Encoder) -> VectorIndex:
    """Return the searched index; raise ModelMissingError if there is none, ConfigError for another model's."""
    return same_model(_required_row(), model)


def index_and_model() -> tuple[Encoder, VectorIndex]:
    """Return the active index and its model, which stay what they are when another index takes over meanwhile.

    Raises as `active_index` and `encoder` do.
    """
    row = _required_row()
    model = encoder(row)
    return model, same_model(row, model)


def _required_row() -> EmbeddingIndex:
    row = active_row()
    if row is None:
        raise ModelMissingError("There is no embedding index yet: run `manage.py ingest` or sync a connection first.")
    return row
