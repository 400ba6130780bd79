"""The Model Context Protocol: search, fetch, recall and remember as tools for agents."""
