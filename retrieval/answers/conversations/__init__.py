"""Conversations of the chat page: asking, writing the answer, reading again what may still be read."""
