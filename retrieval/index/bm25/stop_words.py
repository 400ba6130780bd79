"""The words that say nothing about what a question is about. No Django."""

from importlib.resources import files
from typing import Final

#: Those that PostgreSQL's English leaves out.
ENGLISH: Final = tuple((files("retrieval.index.bm25") / "english_stop_words.txt").read_text(encoding="utf-8").split())
