"""What the BM25 index holds of a chunk, and how its texts become terms. No Django.

A text in the installation's language is stemmed, and the whole of it, title and headings included, is in `body`;
`title` and `heading` hold these once more, so that a match there counts more. A text in another language is as it
is in `plain`. `exact` has the names of both as they are written (`retrieval.index.bm25.spelling`).
"""

from functools import cache
from importlib.resources import files
from typing import Final

from tantivy import Filter, Index, Schema, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from retrieval.index.bm25.spelling import MAX_NAME_LENGTH

#: Those that PostgreSQL's English leaves out.
ENGLISH: Final = tuple((files("retrieval.index.bm25") / "english_stop_words.txt").read_text(encoding="utf-8").split())


SCHEMA_VERSION: Final = 3  #: Raised by one whenever the same chunks would make another index: then it is built again.
BODY: Final = "body"
TITLE: Final = "title"
HEADING: Final = "heading"
QUESTIONS: Final = "questions"
PLAIN: Final = "plain"
EXACT: Final = "exact"
DOCUMENT: Final = "document"
HIGH: Final = "document_high"  #: The two halves of a document's id, to be read without the stored documents.
LOW: Final = "document_low"
ORDINAL: Final = "ordinal"
CONNECTION: Final = "connection"
#: When its document changed, in microseconds since 1970; `ALWAYS` where nothing but a sync says so.
CHANGED: Final = "changed"
#: What an agent remembered it as, and of which project; `NONE` for other documents, and where there is none.
MEMORY_KIND: Final = "memory_kind"
MEMORY_PROJECT: Final = "memory_project"
SOURCE_TYPE: Final = "source_type"  #: Its document's source type, the kinds of content in it, and its quality.
HINTS: Final = "hints"
QUALITY: Final = "quality"
MARK: Final = "mark"  #: One entry of the index holds how far it has followed the outbox, and nothing else.
POSITION: Final = "position"
FINGERPRINT: Final = "fingerprint"  #: A hash of all that the index reads of the chunk.
ALWAYS: Final = 2**62
NONE: Final = "-"
#: Languages, as PostgreSQL names them, that tantivy has stop words and a stemmer for, and those with the latter alone.
_WITH_STOP_WORDS: Final = frozenset(
    {
        *("danish", "dutch", "finnish", "french", "german", "hungarian"),
        *("italian", "norwegian", "portuguese", "russian", "spanish", "swedish"),
    }
)
_STEMMED: Final = _WITH_STOP_WORDS | {"arabic", "english", "greek", "romanian", "tamil", "turkish"}
_MAX_TERM_LENGTH: Final = 60  #: Maximum length of a term, in bytes; longer ones are data.
#: A run of letters, marks and digits; where words are not parted, each sign.
_WORD: Final = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]"
    r"|[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]]+"
)
_STEMS, _WORDS, _SPELLINGS, _RAW = "stems", "words", "spellings", "raw"


@cache
def schema() -> Schema:
    """Return the fields."""
    builder = SchemaBuilder()
    for name, tokenizer, kept in (
        (BODY, _STEMS, "position"),
        (TITLE, _STEMS, "freq"),
        (HEADING, _STEMS, "freq"),
        (QUESTIONS, _STEMS, "freq"),
        (PLAIN, _WORDS, "position"),
        (EXACT, _SPELLINGS, "freq"),
        (DOCUMENT, _RAW, "basic"),
        (MEMORY_KIND, _RAW, "basic"),
        (MEMORY_PROJECT, _RAW, "basic"),
        (SOURCE_TYPE, _RAW, "basic"),
        (HINTS, _RAW, "basic"),
        (MARK, _RAW, "freq"),
    ):
        builder.add_text_field(name, tokenizer_name=tokenizer, index_option=kept)
    for name in (HIGH, LOW, ORDINAL, POSITION, FINGERPRINT):
        builder.add_unsigned_field(name, fast=True)
    builder.add_unsigned_field(CONNECTION, fast=True, indexed=True)
    builder.add_integer_field(CHANGED, fast=True)
    builder.add_float_field(QUALITY, fast=True)
    return builder.build()


def prepare(index: Index, language: str) -> Index:
    """Return the index with its analyzers, which it does not store; `language` is PostgreSQL's name."""
    for name, analyzer in (
        (_STEMS, stems(language)),
        (_WORDS, words()),
        (_SPELLINGS, _analyzer(Tokenizer.whitespace(), Filter.remove_long(MAX_NAME_LENGTH * 4), Filter.ascii_fold())),
    ):
        index.register_tokenizer(name, analyzer)
    return index


@cache
def stems(language: str, *, asked: bool = False) -> TextAnalyzer:
    """Return what makes stems of a text; where it is `asked`, a question, without stop words."""
    filters = [Filter.remove_long(_MAX_TERM_LENGTH), Filter.lowercase()]
    if asked and language == "english":
        filters.append(Filter.custom_stopword(list(ENGLISH)))
    elif asked and language in _WITH_STOP_WORDS:
        filters.append(Filter.stopword(language))
    if language in _STEMMED:
        filters.append(Filter.stemmer(language))
    # After the stemmer, which knows the language's accents.
    return _analyzer(Tokenizer.regex(_WORD), *filters, Filter.ascii_fold())


@cache
def words(*without: str) -> TextAnalyzer:
    """Return what makes small letters of a text's words, without the stop words of languages."""
    stops = [Filter.stopword(it) for it in without if it in _WITH_STOP_WORDS]
    stops += [Filter.custom_stopword(list(ENGLISH)) for it in without if it == "english"]
    filters = (Filter.remove_long(_MAX_TERM_LENGTH), Filter.lowercase(), *stops, Filter.ascii_fold())
    return _analyzer(Tokenizer.regex(_WORD), *filters)


@cache
def _fold() -> TextAnalyzer:
    return _analyzer(Tokenizer.raw(), Filter.ascii_fold())


def folded(lexeme: str) -> str:
    """Return PostgreSQL's form of a word without accents, as terms are."""
    return "".join(_fold().analyze(lexeme))


def _analyzer(tokenizer: Tokenizer, *filters: Filter) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(tokenizer)
    for it in filters:
        builder = builder.filter(it)
    return builder.build()
