"""Answers with citations from the passages of a search, conversations, and the memory of agents."""
