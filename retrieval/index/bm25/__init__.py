"""The BM25 index: a read model of the chunks beside PostgreSQL, by tantivy, that can be built again at any time."""
