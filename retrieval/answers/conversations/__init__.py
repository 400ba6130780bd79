"""Conversations of the chat page: asking, writing the answer, reading again with the current access."""
