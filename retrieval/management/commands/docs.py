"""`manage.py docs`: write the generated parts of the documents: reference tables, and the list of decisions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from retrieval.engine.pipeline import Legs
from retrieval.management.commands.tunables import tunables_table
from retrieval.presets.catalog import PRESETS
from retrieval.presets.stage_catalog import stage_classes

#: Between these two lines of a page stands what is generated.
_BEGIN: Final = "<!-- generated: make docs -->\n"
_END: Final = "<!-- end of generated text -->\n"


class Command(BaseCommand):
    """Replace the generated part of each page."""

    help = "Write the generated parts of the pages in docs/."

    def handle(self, *_: Any, **__: Any) -> None:
        for page, text in generated().items():
            try:
                page.write_text(updated(page.read_text(), text))
            except (OSError, ValueError) as error:
                raise CommandError(f"{page} cannot be written: {error}") from error


def generated() -> dict[Path, str]:
    """Return the generated part of each page."""
    docs = Path(settings.BASE_DIR) / "docs"
    return {
        docs / "configuration.md": preset_sections(),
        docs / "stages.md": stages_table(),
        docs / "decisions" / "README.md": decisions_list(docs / "decisions"),
    }


def updated(page: str, text: str) -> str:
    """Return a page with its generated part replaced; raise ValueError for one that has none."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError("the lines around the generated part are missing")
    return f"{before}{begin}\n{text}\n\n{end}{after}"


def preset_sections() -> str:
    """Return a heading and the table of tunables for every preset."""
    sections = (f"### `{it.name}`\n\n{it.description}\n\n{tunables_table(it.defaults)}" for it in PRESETS.values())
    return "\n\n".join(sections)


def stages_table() -> str:
    """Return the Markdown table of all stages: those that presets share first."""
    return "\n".join(["| stage | what it does | file |", "| --- | --- | --- |", *_stage_rows()])


def _stage_rows() -> Iterator[str]:
    stages: tuple[type[Any], ...] = (Legs, *stage_classes())
    for stage in stages:
        file = f"{stage.__module__.replace('.', '/')}.py"
        yield f"| `{stage.name}` | {stage.about.purpose} | [{file}](../{file}) |"


def decisions_list(folder: Path) -> str:
    """Return a link to each decision, by its title."""
    pages = {page.name: page.read_text().partition("\n")[0] for page in sorted(folder.glob("0*.md"))}
    return "\n".join(f"{int(name[:4])}. [{title.removeprefix('# ')}]({name})" for name, title in pages.items())
