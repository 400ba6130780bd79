"""Whose tokens count: those of the language model that would answer, where its tokenizer is on this machine."""

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from corecube.errors import DatabaseUnavailableError
from retrieval.index import active
from retrieval.llm.token_counters import counter_of
from retrieval.models import LanguageModel, RoutingRule
from retrieval.presets.contextpack.config import ContextPackConfig
from retrieval.presets.contextpack.stages.pack_context import ContextConfig
from retrieval.search.context_packs import retrieve, retrieved
from retrieval.search.request import SearchRequest
from tests.fake_llm import FakeLLM

PATH = "/api/v1/language-models"
TEXT = "The hatch of the cold store is open."


@pytest.fixture(autouse=True)
def models_dir(settings, tmp_path):
    """Two tokenizers, one of which takes each byte for a token, and a damaged one."""
    settings.CORECUBE_MODELS_DIR = tmp_path / "models"
    for name, special in (("bytes", []), ("other", ["hatch"])):
        (settings.CORECUBE_MODELS_DIR / name).mkdir(parents=True)
        alphabet = {sign: number for number, sign in enumerate(sorted(ByteLevel.alphabet()))}
        made = Tokenizer(BPE(vocab=alphabet, merges=[]))
        made.pre_tokenizer = ByteLevel(add_prefix_space=False)
        made.add_tokens(special)
        made.save(str(settings.CORECUBE_MODELS_DIR / name / "tokenizer.json"))
    (settings.CORECUBE_MODELS_DIR / "damaged").mkdir()
    (settings.CORECUBE_MODELS_DIR / "damaged" / "tokenizer.json").write_text('{"model": 1}')
    return settings.CORECUBE_MODELS_DIR


@pytest.fixture
def llm():
    with FakeLLM() as fake:
        yield fake


def stored(slug, llm, tokenizer, **more):
    return LanguageModel.objects.create(
        slug=slug, name=slug, base_url=llm.url, model="fake-small", tokenizer=tokenizer, **more
    )


def test_a_pack_is_counted_in_the_tokens_of_who_would_answer(world, llm):
    stored("ours", llm, "bytes", is_default=True)
    pack = retrieve("rollback staging", principal=world.principal("bob"))
    assert pack.trace.tokenizer == "ours"
    # The two line breaks behind a passage are counted, behind the last one too.
    assert pack.trace.final_token_count == len(pack.context_pack.encode()) + 2 > 100


def test_a_budget_is_one_of_those_tokens(world, llm):
    whole = retrieve("rollback staging", principal=world.principal("bob"))
    assert whole.trace.tokenizer == "hash"
    assert whole.trace.final_token_count <= 250
    stored("ours", llm, "bytes", is_default=True)
    config = ContextPackConfig(context=ContextConfig(budget_tokens=250, min_primary=1))
    pack = retrieve("rollback staging", config=config, principal=world.principal("bob"))
    assert 0 < len(pack.selected_chunks) < len(whole.selected_chunks)
    assert len(pack.context_pack.encode()) <= 250


@pytest.mark.parametrize(("more", "packed"), [(2, 2), (0, 1), (-1, 1), (-2, 1)])
def test_the_whole_text_keeps_to_a_budget_that_is_nearly_its_size(world, llm, more, packed):
    stored("ours", llm, "bytes", is_default=True)
    bob = world.principal("bob")
    budget = len(retrieve("rollback staging", principal=bob).context_pack.encode()) + more
    config = ContextPackConfig(context=ContextConfig(budget_tokens=budget, min_primary=1))
    pack = retrieve("rollback staging", config=config, principal=bob)
    assert len(pack.selected_chunks) == packed
    assert len(pack.context_pack.encode()) <= pack.trace.final_token_count <= budget


def test_a_bound_compartments_model_counts_its_own(world, llm):
    stored("ours", llm, "bytes", is_default=True)
    bound = stored("bound", llm, "other")
    RoutingRule.objects.create(compartment=world.runbooks.compartment, language_model=bound)
    assert retrieve("rollback staging", principal=world.principal("bob")).trace.tokenizer == "bound"


def test_a_hit_that_is_not_packed_says_nothing_of_whose_tokens_count(world, llm):
    stored("ours", llm, "bytes", is_default=True)
    RoutingRule.objects.create(compartment=world.ledger.compartment, language_model=stored("bound", llm, "other"))
    alice = world.principal("alice")
    assert retrieve("rollback staging", principal=alice).trace.tokenizer == "bound"
    request = SearchRequest(text="rollback staging", preset="contextpack", overrides={"relevance.top": 1})
    pack, _ = retrieved(request, principal=alice, top_k=10)
    assert [it.facts.connection_id for it in pack.selected_chunks if it.role == "primary"] == [world.runbooks.pk]
    assert pack.trace.tokenizer == "ours"


def test_where_it_cannot_be_read_who_would_answer_the_embedding_model_counts(world, monkeypatch):
    def is_down(*_, **__):
        raise DatabaseUnavailableError

    monkeypatch.setattr("retrieval.search.prepare.answerer_counter", is_down)
    pack = retrieve("rollback staging", principal=world.principal("bob"))
    assert pack.selected_chunks
    assert pack.trace.tokenizer == active.encoder().name
    assert pack.trace.degraded == ("pack_counter_failed",)


@pytest.mark.parametrize("tokenizer", ["", "absent", "damaged"])
def test_without_one_that_can_be_read_the_embedding_models_stands_in(world, llm, tokenizer):
    model = stored("ours", llm, tokenizer, is_default=True)
    assert counter_of(model) is None
    pack = retrieve("rollback staging", principal=world.principal("bob"))
    assert pack.trace.tokenizer == active.encoder().name
    assert pack.selected_chunks


def test_a_file_that_was_replaced_is_read_again(llm, models_dir, db):
    model = stored("ours", llm, "bytes")
    before = counter_of(model).count(["a hatch"])
    (models_dir / "bytes" / "tokenizer.json").write_bytes((models_dir / "other" / "tokenizer.json").read_bytes())
    assert (before, counter_of(model).count(["a hatch"])) == ([7], [3])


def test_special_tokens_and_cuts_of_the_file_do_not_count(models_dir):
    path = models_dir / "bytes" / "tokenizer.json"
    cutting = Tokenizer.from_file(str(path))
    cutting.enable_truncation(3)
    cutting.enable_padding(length=50)
    cutting.save(str(path))
    assert counter_of(LanguageModel(slug="ours", tokenizer="bytes")).count([TEXT, ""]) == [len(TEXT), 0]


class TestAdmins:
    @pytest.fixture
    def send(self, client, world):
        alice = world.key("alice")

        def ask(method, path, body):
            headers = {"Authorization": f"Bearer {alice}"}
            return getattr(client, method)(path, body, content_type="application/json", headers=headers)

        return ask

    def test_it_is_a_setting_of_the_model(self, send, llm):
        body = {"name": "Ours", "base_url": llm.url, "model": "m", "tokenizer": "bytes"}
        assert send("post", PATH, body).json()["tokenizer"] == "bytes"
        assert send("patch", f"{PATH}/ours", {"tokenizer": ""}).json()["tokenizer"] == ""
        assert LanguageModel.objects.get().tokenizer == ""

    @pytest.mark.parametrize("name", ["absent", "damaged", "../models/bytes", "..", "/etc", "bytes/", "a\0b"])
    def test_one_that_cannot_be_read_is_refused(self, send, llm, name):
        body = {"name": "Ours", "base_url": llm.url, "model": "m", "tokenizer": name}
        answer = send("post", PATH, body)
        assert answer.status_code == 422
        assert "tokenizer" in answer.content.decode()
        assert not LanguageModel.objects.exists()

    def test_the_form_offers_what_is_on_this_machine(self, client, world, llm):
        stored("ours", llm, "gone")
        client.force_login(world.alice)
        page = client.get("/language-models/ours/").content.decode()
        assert all(f'<option value="{name}"' in page for name in ("bytes", "other", "gone"))
