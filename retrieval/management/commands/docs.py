"""`manage.py docs`: generate the reference tables and the list of decisions in the documentation."""

from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError

from corecube.commands import CoreCubeCommand
from retrieval.engine.pipeline import Legs
from retrieval.management.commands.plan import plan_tables
from retrieval.management.commands.tunables import tunables_table
from retrieval.presets.catalog import PRESETS
from retrieval.presets.preset import Preset
from retrieval.presets.stage_catalog import stage_classes

_BEGIN: Final = "<!-- generated: make docs -->\n"  #: The generated part of a page is between these two lines.
_END: Final = "<!-- end of generated text -->\n"


class Command(CoreCubeCommand):
    """Write the generated parts of the pages in docs/."""

    def handle(self, *_: Any, **__: Any) -> None:
        for page, text in generated().items():
            try:
                page.write_text(updated(page.read_text(), text))
            except (OSError, ValueError) as error:
                raise CommandError(f"{page} cannot be written: {error}") from error


def generated() -> dict[Path, str]:
    """Return the generated part of each page."""
    docs = Path(settings.BASE_DIR) / "docs"
    decisions = docs / "decisions"
    sections = (f"### `{it.name}`\n\n{it.description}\n\n{_preset_table(it)}" for it in PRESETS.values())
    stages: tuple[type[Any], ...] = (Legs, *stage_classes())
    rows = ["| stage | what it does | file |", "| --- | --- | --- |"]
    for stage in stages:
        file = f"{stage.__module__.replace('.', '/')}.py"
        rows.append(f"| `{stage.name}` | {stage.about.purpose} | [{file}](../{file}) |")
    titles = {page.name: page.read_text().partition("\n")[0] for page in sorted(decisions.glob("0*.md"))}
    links = (f"{int(name[:4])}. [{title.removeprefix('# ')}]({name})" for name, title in titles.items())
    return {
        docs / "configuration.md": "\n\n".join(sections),
        docs / "stages.md": "\n".join(rows),
        docs / "scaling.md": plan_tables(),
        decisions / "README.md": "\n".join(links),
    }


def _preset_table(preset: Preset) -> str:
    if not preset.lines:
        return tunables_table(preset.defaults)
    rows = ["| section | the document says | settings | note |", "| --- | --- | --- | --- |"]
    for line in preset.lines:
        settings = ", ".join(f"`{name}` {value:g}" for name, value in line.values.items())
        rows.append(f"| {line.section} | {line.says} | {settings} | {line.note} |")
    return "\n".join(rows)


def updated(page: str, text: str) -> str:
    """Return a page with its generated part replaced; raise ValueError for a page without one."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError("the lines around the generated part are missing")
    return f"{before}{begin}\n{text}\n\n{end}{after}"
