"""Jupyter notebooks: Markdown cells as Markdown, code cells as code, their output as text within a limit."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from retrieval.errors import IngestError
from retrieval.ingest.parse.decoding import decode
from retrieval.ingest.parse.finish import finished, tidy
from retrieval.ingest.parse.markdown import blocks_of_markdown
from retrieval.text.document import Block, BlockKind, ParsedDocument, RawDocument

_MAX_OUTPUT_CHARACTERS: Final = 2_000
_MAX_CELLS: Final = 20_000
_CUT: Final = "\n…"


def parse_notebook(raw: RawDocument) -> ParsedDocument:
    """Return the cells without images. Raises IngestError: `corrupt`, `too_large` beyond 20,000 cells."""
    try:
        notebook = json.loads(decode(raw.content))
    except (ValueError, RecursionError) as error:
        raise IngestError("corrupt", "The file is not a notebook.") from error
    if not isinstance(notebook, dict):
        raise IngestError("corrupt", "The file is not a notebook.")
    sheets = notebook.get("worksheets")
    holders = [notebook, *sheets] if isinstance(sheets, list) else [notebook]
    found = [holder.get("cells") for holder in holders if isinstance(holder, dict)]
    if not any(isinstance(cells, list) for cells in found):
        raise IngestError("corrupt", "The file is not a notebook.")
    cells = [cell for cells in found if isinstance(cells, list) for cell in cells]
    if len(cells) > _MAX_CELLS:
        raise IngestError("too_large", f"The notebook has more than {_MAX_CELLS} cells.")
    blocks = [block for cell in cells if isinstance(cell, dict) for block in _blocks(cell)]
    return finished(raw, source_type="notebook", blocks=blocks, metadata=_metadata(notebook))


def _metadata(notebook: Mapping[str, Any]) -> dict[str, str]:
    facts = notebook.get("metadata")
    language = facts.get("language_info") if isinstance(facts, dict) else None
    name = language.get("name") if isinstance(language, dict) else None
    return {"programming_language": name} if isinstance(name, str) else {}


def _blocks(cell: Mapping[str, Any]) -> Iterator[Block]:
    source = _text(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    if kind == "heading":
        level = cell.get("level")
        yield Block(BlockKind.HEADING, source, level=min(max(level, 1), 6) if isinstance(level, int) else 1)
    elif kind == "markdown":
        yield from blocks_of_markdown(tidy(source))
    elif kind == "code":
        yield Block(BlockKind.CODE, source)
        outputs = cell.get("outputs")
        free = _MAX_OUTPUT_CHARACTERS
        for output in outputs if isinstance(outputs, list) else ():
            text = tidy(_output(output)) if isinstance(output, dict) else ""
            if text and free > 0:
                yield Block(BlockKind.CODE, text if len(text) <= free else text[:free] + _CUT)
                free -= len(text)
    else:
        yield Block(BlockKind.PARAGRAPH, source)


def _output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") in ("error", "pyerr"):
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    data = output.get("data")
    shown = data.get("text/markdown", data.get("text/plain")) if isinstance(data, dict) else output.get("text")
    return _text(shown)


def _text(lines: object) -> str:
    if isinstance(lines, list):
        return "".join(line for line in lines if isinstance(line, str))
    return lines if isinstance(lines, str) else ""
