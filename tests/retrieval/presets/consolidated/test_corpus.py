"""A small mixed corpus in which the plain pool is one-sided: what a section requires is there after Stage B."""

from io import BytesIO

import docx
import openpyxl
import pytest

from corecube.access import Principal
from corecube.models import Compartment, Connection, Grant
from corecube.scope import Sensitivity
from retrieval.index import recovery
from retrieval.ingest.sync import sync_connection
from retrieval.presets.consolidated.evidence.recovery import Diagnosis, Presence
from retrieval.presets.consolidated.evidence.section_reading import shipped
from retrieval.search.evidence_runs import EvidenceRequest, gather
from tests.retrieval.ingest.conftest import column, make_pdf
from tests.retrieval.presets.consolidated.stages.test_sources import place

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("unhurried")]

REPORT = shipped("report")
MEMO = shipped("property_memo")
SUBJECT = "Saltholm ferry"
#: Sections that require spreadsheets, Markdown and PDF.
REQUIRING = {it.name: it.required for it in REPORT.sections if it.required}
#: Every template's words, so that these pages crowd all else out of every pool.
_TEMPLATES = " ".join(it.query(SUBJECT) for it in REPORT.sections)


def workbook():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Berth", "Tonnage", "Crowns"])
    for number in range(60):
        sheet.append([f"berth {number}", number * 7, number * 1_300])
    written = BytesIO()
    book.save(written)
    return written.getvalue()


def handbook():
    document = docx.Document()
    document.add_heading("Crew handbook", 0)
    for number in range(4):
        document.add_paragraph(f"The night crew of berth {number} greases the winch and signs the log. " * 8)
    written = BytesIO()
    document.save(written)
    return written.getvalue()


def crowd():
    """Return web pages, a type that no section requires, that say what every section asks for."""
    return {
        f"news{number}.html": f"<html><head><title>News {number}</title></head><body><main><h1>News {number}</h1>"
        f"<p>{_TEMPLATES} number {number}.</p></main></body></html>".encode()
        for number in range(60)
    }


FILES = {
    "berths.xlsx": workbook(),
    "handbook.docx": handbook(),
    "winch.md": b"# Winch\n\nThe winch is greased every night and the rope is laid on the bench.\n",
    "lease.pdf": make_pdf(column("Lease of the pier", "", "The lessee greases the bollards of the pier at night.")),
}


@pytest.fixture
def take_in(people, tmp_path):
    """Return a function that has files taken in by a connection of a compartment of its own, which Alice may see."""

    def take_in(slug, files):
        compartment = Compartment.objects.create(slug=slug, name=slug.capitalize())
        Grant.objects.create(user=people["alice"], compartment=compartment, clearance=Sensitivity.RESTRICTED)
        folder = tmp_path / slug
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        connection = Connection.objects.create(
            slug=slug, name=slug.capitalize(), kind="folder", config={"path": str(folder)}, compartment=compartment
        )
        sync_connection(connection)
        return connection

    return take_in


@pytest.fixture
def probes(monkeypatch):
    """Return the list of what the store was probed for: the types' names and the connections."""
    asked = []
    whole = recovery.of_source_types

    def probe(source_types, **facts):
        asked.append((tuple(source_types), tuple(facts["scope"].connection_ids)))
        return whole(source_types, **facts)

    monkeypatch.setattr(recovery, "of_source_types", probe)
    return asked


def run(people, section_set="report"):
    return gather(EvidenceRequest(section_set=section_set, subject=SUBJECT), principal=Principal(people["alice"]))


def pool_of(outcome):
    """Return the canonical source types of the pool that Stage B was given."""
    chunks = {hit.chunk_id: hit for span in outcome.trace for hit in span.left if hit.facts}
    spans = [span for span in outcome.trace if not span.parent]
    before = spans[[span.stage for span in spans].index("sources") - 1].left
    return {REPORT.canonical(chunks[hit.chunk_id].chunk.source_type) for hit in before}


def diagnoses(evidence):
    return [
        (found.section.name, event["source_type"], place(event, found.outcome.state.scope), event["diagnosis"])
        for found in evidence.sections
        for event in found.outcome.state.events
        if event["event"] == "source_recovery_result"
    ]


def test_a_required_type_that_the_plain_pool_misses_is_there_after_stage_b(people, take_in):
    take_in("harbour", {**FILES, **crowd()})
    evidence = run(people)
    missed = {
        (found.section.name, name)
        for found in evidence.sections
        for name in found.section.required
        if name not in pool_of(found.outcome)
    }
    assert missed == {(section, name) for section, names in REQUIRING.items() for name in names}
    for found in evidence.sections:
        for name in found.section.required:
            cell = found.cells[name]
            # The workbook is one chunk, of which facts and figures need three.
            is_thin = cell.count < found.section.quantity_floor(name)
            assert cell.presence is (Presence.THIN if is_thin else Presence.RECOVERED)
            assert cell.recovered >= 1
            assert cell.count >= 1
            assert any(REPORT.canonical(hit.chunk.source_type) == name for hit in found.outcome.hits)
            assert any(REPORT.canonical(passage.hit.chunk.source_type) == name for passage in found.outcome.passages)


def test_a_kind_of_content_filters_and_is_given_up_where_hardly_anything_is_left(people, take_in):
    """Of all these files the workbook alone holds a table, which the section of figures is about."""
    take_in("harbour", {**FILES, **crowd()})
    request = EvidenceRequest(section_set="report", section="facts_and_figures", subject=SUBJECT)
    (found,) = gather(request, principal=Principal(people["alice"])).sections
    retry = next(event for event in found.outcome.state.events if event["event"] == "chunk_retry")
    assert (found.section.hint, retry["before"], retry["taken"]) == ("table", 1, True)
    assert found.outcome.state.filter.hint == ""
    assert len(found.outcome.hits) > retry["before"]


def test_one_probe_is_made_for_each_compartment_and_absent_type_and_not_for_each_section(people, take_in, probes):
    """Eleven sections of the memo require spreadsheets or market data; neither compartment has any of these."""
    first, second = take_in("harbour", crowd()), take_in("quay", {"winch.md": FILES["winch.md"]})
    evidence = run(people, "property_memo")
    requiring = [(it.name, name) for it in MEMO.sections for name in it.required]
    assert len(requiring) >= 10
    assert sorted(probes) == sorted(
        (MEMO.stored_as(name), (connection.pk,)) for name in ("excel", "costar") for connection in (first, second)
    )
    seen = set()
    expected = []
    for section, name in requiring:
        said = Diagnosis.KNOWN_ABSENT if name in seen else Diagnosis.ABSENT
        expected += [(section, name, compartment, said) for compartment in ("Harbour", "Quay")]
        seen.add(name)
    assert diagnoses(evidence) == expected
    for found in evidence.sections:
        assert {found.cells[name].presence for name in found.section.required} <= {Presence.MISSING}


def test_an_optional_type_is_never_probed_for(people, take_in, probes):
    take_in("harbour", {**crowd(), "handbook.docx": FILES["handbook.docx"]})
    run(people)
    required = {name for names in REQUIRING.values() for name in names}
    assert {types for types, _ in probes} == {REPORT.stored_as(name) for name in required}
