"""Routing a question: skip, memory type, time, project. Pure."""
