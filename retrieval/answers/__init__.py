"""Answers: from the passages of a search to sentences with citations, conversations, and what agents remember."""
