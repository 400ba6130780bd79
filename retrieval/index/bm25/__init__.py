"""The BM25 index: a read model of the chunks in tantivy, which can be rebuilt at any time."""
