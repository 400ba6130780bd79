"""What a search is made of: its types and state, stages and pipelines, query, deadline, tunables. Free of Django."""
