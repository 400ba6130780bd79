"""Edits of section sets, as a form or a program would send them."""

from retrieval.search.section_sets import section_named


def written_with(section_set, section, values):
    """Return a set's mapping with some fields of one section changed, unchecked; raise UnknownSectionError."""
    section_named(section_set, section)
    mapping = section_set.to_mapping()
    rows = [{**row, **values} if row["name"] == section else row for row in mapping["sections"]]
    return {**mapping, "sections": rows}
