"""Embedding models, language models, usage and routes."""
