"""The engine: ingestion, search, answers."""
