"""Enrichment of chunks by a language model after a sync: optional, within a budget, and separate from the text."""
