"""Whether the embedding model and full-text search know the language of a question. No Django."""

from collections.abc import Collection
from typing import Final

from retrieval.encoders.model_table import MODEL_TABLE
from retrieval.llm.types import Notice
from retrieval.text.language import question_language

UNKNOWN_LANGUAGE: Final = "unknown_language"
_ENGLISH: Final = "english"
_ANY: Final = "simple"  #: The text search configuration without stemming, which suits every language.


def language_notice(question: str, *, model: str, text_search: Collection[str]) -> Notice | None:
    """Return a notice that names the settings to change if a question's language is not covered; None in doubt.

    `text_search` are the text search configurations of the sources searched. An unlisted model may know any language.
    """
    language = question_language(question)
    listed = MODEL_TABLE.get(model.removesuffix("-fp32"))
    gaps = []
    if listed and listed.languages.lower() == _ENGLISH != language:
        gaps.append(
            f"the embedding model {model} supports only English (page Models, or CORECUBE_MODEL for the first index)"
        )
    if text_search and not {language, _ANY} & {*text_search}:
        read = " and ".join(sorted(it.capitalize() for it in text_search))
        gaps.append(f"full-text search is set to {read} (CORECUBE_TEXT_SEARCH_CONFIG, or the language of a connection)")
    if not language or not gaps:
        return None
    return Notice(
        UNKNOWN_LANGUAGE,
        f"The question seems to be in {language.capitalize()}, but {', and '.join(gaps)}. Answers may be worse.",
    )
