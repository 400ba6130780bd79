import pytest
from django.core.management import CommandError, call_command

from corecube.connections import InvalidConnectionError, change_connection
from corecube.errors import ConfigError
from corecube.models import Compartment, Connection, Grant
from corecube.scope import Sensitivity, TrustLevel
from retrieval.encoders import embedders
from retrieval.errors import ModelMissingError
from retrieval.index import active
from retrieval.ingest.sync import sync_connection
from retrieval.models import Document, Sync


@pytest.fixture
def folder(db, tmp_path):
    root = tmp_path / "Team Wiki"
    root.mkdir()
    for name in ("a", "b", "c"):
        (root / f"{name}.md").write_text(f"# Page {name}\n\nText of {name}.\n")
    return root


def ingest(capsys, *arguments, **options):
    call_command("ingest", *map(str, arguments), **options)
    return capsys.readouterr().out


def test_a_folder_becomes_a_connection_named_after_it(folder, capsys):
    printed = ingest(capsys, folder)
    assert "3 seen, 3 added" in printed
    assert "General has no grants yet" in printed
    connection = Connection.objects.get()
    assert (connection.slug, connection.name, connection.kind) == ("team-wiki", "Team Wiki", "folder")
    assert connection.sensitivity == Sensitivity.INTERNAL


def test_the_options_say_where_it_stands(folder, capsys):
    ingest(capsys, folder, connection="Notes", compartment="Research", sensitivity="restricted", trust="authoritative")
    connection = Connection.objects.get()
    assert (connection.name, connection.compartment.name) == ("Notes", "Research")
    assert (connection.sensitivity, connection.trust) == (Sensitivity.RESTRICTED, TrustLevel.AUTHORITATIVE)


GERMAN = (
    "# Urlaub\n\nDer Urlaub ist im Portal zu beantragen, und die Leitung entscheidet über ihn in der Woche danach.\n"
)


def test_documents_in_another_language_are_reported_until_it_is_set(folder, capsys):
    ingest(capsys, folder)
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(GERMAN)
    assert "Most of these documents are in German, but full-text search reads them as English" in ingest(capsys, folder)
    assert "German" not in ingest(capsys, folder, connection="Handbuch", language="german")
    assert Connection.objects.get(slug="handbuch").language == "german"


def test_a_second_run_embeds_nothing(folder, capsys):
    ingest(capsys, folder)
    assert "0 added, 0 changed, 3 unchanged" in ingest(capsys, folder)
    assert Connection.objects.count() == 1


def test_one_file_alone_can_be_ingested(folder, capsys):
    assert "1 seen, 1 added" in ingest(capsys, folder / "a.md")


def test_a_granted_compartment_is_not_warned_about(folder, people, capsys):
    compartment = Compartment.objects.create(slug="general", name="General")
    Grant.objects.create(user=people["bob"], compartment=compartment, clearance=Sensitivity.INTERNAL)
    assert "Nobody has a grant" not in ingest(capsys, folder)


def test_bad_files_are_listed_with_their_reason(folder, capsys):
    (folder / "empty.md").write_bytes(b"")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    printed = ingest(capsys, folder)
    assert "3 added" in printed
    assert "2 failed" in printed
    assert "empty.md: empty: " in printed
    assert "broken.pdf: corrupt: " in printed


def test_a_missing_path_is_named_and_makes_nothing(db, tmp_path):
    with pytest.raises(CommandError, match=f"{tmp_path}/nowhere does not exist"):
        call_command("ingest", str(tmp_path / "nowhere"))
    assert not Connection.objects.exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("compartment", "Other"), ("sensitivity", "public"), ("trust", "volatile"), ("language", "german")],
)
def test_options_that_contradict_the_connection_change_nothing(folder, capsys, option, value):
    ingest(capsys, folder)
    before = Connection.objects.values().get()
    with pytest.raises(CommandError, match=f"exists with another {option}"):
        call_command("ingest", str(folder), **{option: value})
    before.pop("last_synced_at")
    assert before.items() <= Connection.objects.values().get().items()


@pytest.mark.parametrize("name", ["漢字", "---"])
def test_a_name_that_no_address_can_hold_is_refused(folder, name):
    with pytest.raises(CommandError, match="needs a letter"):
        call_command("ingest", str(folder), connection=name)


@pytest.mark.parametrize("option", ["connection", "compartment"])
def test_a_name_that_the_tables_would_cut_is_refused(folder, option):
    with pytest.raises(CommandError, match="more than 120 characters"):
        call_command("ingest", str(folder), **{option: "n" * 121})
    assert not Connection.objects.exists()


@pytest.mark.parametrize(("first", "second"), [("C++", "C#"), ("n" * 60, "n" * 61)])
def test_two_names_never_share_a_compartment_or_a_connection(folder, capsys, first, second):
    ingest(capsys, folder, connection="One", compartment=first)
    with pytest.raises(CommandError, match="would have the same slug"):
        call_command("ingest", str(folder), connection="Two", compartment=second)
    ingest(capsys, folder, connection=first, compartment=first)
    with pytest.raises(CommandError, match="exists with another name"):
        call_command("ingest", str(folder), connection=second)
    assert (Connection.objects.count(), Compartment.objects.count()) == (2, 1)


def test_a_connection_and_a_compartment_are_also_known_by_their_slugs(folder, capsys):
    ingest(capsys, folder, connection="Team Notes", compartment="Research Lab")
    assert "3 unchanged" in ingest(capsys, folder, connection="team-notes", compartment="research-lab")
    ingest(capsys, folder, connection="More", compartment="research-lab")
    assert Compartment.objects.count() == 1


def test_the_default_compartment_may_have_another_name(folder, capsys):
    Compartment.objects.create(slug="general", name="Everyone")
    ingest(capsys, folder)
    assert Connection.objects.get().compartment.name == "Everyone"


@pytest.mark.parametrize("queue", [False, True])
def test_a_disabled_connection_is_refused(folder, capsys, queue):
    ingest(capsys, folder)
    Connection.objects.update(enabled=False)
    with pytest.raises(CommandError, match="is disabled"):
        call_command("ingest", str(folder), queue=queue)


def test_another_folder_does_not_take_a_connection_over(folder, tmp_path, capsys):
    ingest(capsys, folder, connection="Notes")
    (tmp_path / "other").mkdir()
    with pytest.raises(CommandError, match="exists with another path"):
        call_command("ingest", str(tmp_path / "other"), connection="Notes")


def test_deletions_over_the_guarded_share_need_the_option(folder, capsys):
    ingest(capsys, folder)
    for name in ("a", "b"):
        (folder / f"{name}.md").unlink()
    with pytest.raises(CommandError, match="--allow-deletions"):
        call_command("ingest", str(folder))
    assert Document.objects.count() == 3
    assert "2 deleted" in ingest(capsys, folder, allow_deletions=True)


def test_a_missing_model_is_named_with_the_way_out(folder, settings, tmp_path, monkeypatch):
    settings.CORECUBE_MODELS_DIR = tmp_path / "no-models"
    monkeypatch.setattr(active, "encoder", lambda *_: embedders.choices().configured().load())
    with pytest.raises(CommandError, match="models fetch") as caught:
        call_command("ingest", str(folder))
    assert isinstance(caught.value.__cause__, ModelMissingError)
    assert Sync.objects.get().status == Sync.Status.FAILED


@pytest.fixture
def no_roots(settings, tmp_path):
    """Nothing may be read but what a command chooses."""
    settings.CORECUBE_FOLDER_ROOTS = [tmp_path / "allowed"]


@pytest.mark.usefixtures("no_roots")
def test_the_command_ingests_any_path_and_workers_sync_it_again(folder, capsys):
    assert "3 added" in ingest(capsys, folder)
    connection = Connection.objects.get()
    (folder / "d.md").write_text("# Page d\n\nText of d.\n")
    assert sync_connection(connection).added == 1
    assert "Queued sync" in ingest(capsys, folder, queue=True)


@pytest.mark.usefixtures("no_roots")
def test_the_command_opens_a_path_that_a_connection_of_the_console_may_not_read(folder, capsys):
    compartment = Compartment.objects.create(slug="general", name="General")
    console = Connection.objects.create(
        slug="team-wiki", name="Team Wiki", kind="folder", config={"path": str(folder)}, compartment=compartment
    )
    with pytest.raises(ConfigError, match="CORECUBE_FOLDER_ROOTS"):
        sync_connection(console)
    assert "3 added" in ingest(capsys, folder)


@pytest.mark.usefixtures("no_roots")
def test_an_admin_changes_all_of_the_commands_connection_but_its_path(folder, capsys, tmp_path):
    ingest(capsys, folder)
    connection = Connection.objects.get()
    connection.name, connection.config = "Wiki", {"path": str(folder), "include": ["a.md"]}
    assert change_connection(connection, {}, actor=None) == ["name", "config.include"]
    assert sync_connection(connection, sync=Sync(connection=connection, allow_deletions=True)).deleted == 2
    connection.config = {"path": str(tmp_path)}
    with pytest.raises(InvalidConnectionError, match="CORECUBE_FOLDER_ROOTS"):
        change_connection(connection, {}, actor=None)
