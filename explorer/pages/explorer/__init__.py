"""The Explorer: a query, every stage, every score, every dropped chunk."""
