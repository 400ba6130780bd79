"""Questions by default where something may write them, and nothing that leaves a pinned compartment."""

import pytest
from django.core.management import CommandError, call_command

from corecube.errors import ConfigError
from corecube.models import ApiKey, Connection
from retrieval.ingest.enrich import services
from retrieval.ingest.enrich.services import enrich, enrich_after_sync, estimate_pass
from retrieval.ingest.enrich.tasks import queue_enrichment
from retrieval.ingest.enrich.wants import default_enrichment, may_be_sent, writable_for
from retrieval.models import Chunk, LanguageModel, Memory, RoutingRule

NOTHING = frozenset()


def bind(compartment, language_model=None):
    return RoutingRule.objects.create(compartment=compartment, language_model=language_model)


def enricher(settings, **changes):
    """Return the enriching model as a language model that a rule can name."""
    fields = {
        "base_url": settings.CORECUBE_ENRICH_URL.removesuffix("/chat/completions"),
        "model": settings.CORECUBE_ENRICH_MODEL,
    }
    return LanguageModel.objects.create(slug="e", name="E", **(fields | changes))


class TestByDefault:
    def new(self, world):
        return Connection(kind="folder", compartment=world.runbooks.compartment)

    @pytest.mark.usefixtures("model")
    def test_questions_where_a_language_model_is_configured(self, world):
        assert default_enrichment(self.new(world)) == "questions"

    @pytest.mark.usefixtures("model")
    def test_nothing_without_a_model_or_where_it_is_switched_off(self, world, settings):
        settings.CORECUBE_ENRICH_BY_DEFAULT = False
        assert default_enrichment(self.new(world)) == ""
        settings.CORECUBE_ENRICH_BY_DEFAULT, settings.CORECUBE_ENRICH_URL = True, ""
        assert default_enrichment(self.new(world)) == ""

    @pytest.mark.usefixtures("model")
    def test_nothing_in_a_pinned_compartment_unless_the_model_is_on_this_machine(self, world, settings):
        bind(world.runbooks.compartment)
        assert default_enrichment(self.new(world)) == ""
        settings.CORECUBE_ENRICH_QUESTIONS_MODEL = "local"
        assert default_enrichment(self.new(world)) == "questions"

    @pytest.mark.usefixtures("model")
    def test_a_connection_made_by_the_api_has_them_unless_it_says_otherwise(self, world, client):
        secret = ApiKey.issue(user=world.alice, name="k")[1]

        def made(name, **more):
            body = {"kind": "push", "name": name, "compartment": "engineering", **more}
            headers = {"Authorization": f"Bearer {secret}"}
            answer = client.post("/api/v1/connections", body, content_type="application/json", headers=headers)
            assert answer.status_code == 201, answer.content
            return answer.json()["enrichment"]

        assert made("One") == "questions"
        assert made("Two", enrichment="") == ""
        bind(world.runbooks.compartment)
        assert made("Three") == ""

    @pytest.mark.usefixtures("model")
    def test_the_form_offers_them_and_stores_what_is_chosen(self, world, client):
        client.force_login(world.alice)
        shown = client.get("/connections/new/push/")
        assert shown.context["form"]["enrichment"].value() == "questions"

    @pytest.mark.usefixtures("model", "world")
    def test_the_command_makes_them_too(self, tmp_path):
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "a.txt").write_text("A note on the lamps in hall seven, which nobody uses.")
        call_command("ingest", str(tmp_path / "notes"), compartment="Engineering")
        assert Connection.objects.get(slug="notes").enrichment == "questions"


class TestPinned:
    def test_nothing_of_a_pinned_compartment_is_sent(self, works, model):
        bind(works.compartment)
        assert writable_for(works) == NOTHING
        assert enrich_after_sync(works).enriched == 0
        with pytest.raises(ConfigError, match="bound to another language model"):
            enrich(works)
        with pytest.raises(CommandError, match="bound"):
            call_command("enrich", connection="works", yes=True)
        with pytest.raises(ConfigError, match="none of it is sent"):
            estimate_pass(works)
        assert model.requests == []
        assert not Chunk.objects.filter(connection_id=works.pk).exclude(context_line="").exists()

    @pytest.mark.usefixtures("model")
    def test_no_pass_is_queued_for_it(self, works, django_capture_on_commit_callbacks):
        bind(works.compartment)
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            queue_enrichment(works)
        assert callbacks == []

    def test_another_compartments_rule_does_not_concern_it(self, works, model, world):
        bind(world.ledger.compartment)
        assert enrich(works).enriched > 0
        assert model.requests

    @pytest.mark.usefixtures("model")
    def test_the_model_that_it_is_bound_to_may_be_the_one_that_enriches(self, works, settings):
        bind(works.compartment, enricher(settings))
        assert may_be_sent(works)
        assert enrich(works).enriched > 0

    @pytest.mark.parametrize(
        "changes", [{"model": "another"}, {"base_url": "http://elsewhere/v1"}, {"is_enabled": False}]
    )
    @pytest.mark.usefixtures("model")
    def test_another_model_is_not_it(self, works, settings, changes):
        bind(works.compartment, enricher(settings, **changes))
        assert not may_be_sent(works)

    @pytest.mark.usefixtures("model")
    def test_what_agents_remember_may_be_of_any_compartment(self, works, world):
        Memory.objects.create(user=world.bob, connection=works)
        assert may_be_sent(works)
        bind(world.ledger.compartment)
        assert not may_be_sent(works)

    def test_a_local_model_writes_there_and_the_other_is_not_asked(self, works, model, settings, monkeypatch):
        bind(works.compartment)
        settings.CORECUBE_ENRICH_QUESTIONS_MODEL = "local"
        Connection.objects.filter(pk=works.pk).update(enrichment="both")
        works.refresh_from_db()
        assert writable_for(works) == {"questions"}
        monkeypatch.setattr("retrieval.ingest.enrich.writers._loaded", lambda _: "a model")
        monkeypatch.setattr(
            "retrieval.ingest.enrich.writers.local_questions", lambda *_: ("What runs at forty bar in here?",)
        )
        assert enrich(works).enriched > 0
        chunks = Chunk.objects.filter(connection_id=works.pk)
        assert all(it.questions and not it.context_line for it in chunks)
        assert model.requests == []

    @pytest.mark.usefixtures("model")
    def test_a_rule_that_comes_during_a_pass_ends_it(self, works, settings, monkeypatch):
        monkeypatch.setattr(services, "_BATCH_CHUNKS", 1)
        settings.CORECUBE_ENRICH_CONCURRENCY = 1

        def pin(*_):
            if not RoutingRule.objects.exists():
                bind(works.compartment)

        result = enrich(works, progress=pin)
        assert result.enriched < Chunk.objects.filter(connection_id=works.pk).count()
