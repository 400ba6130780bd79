import os

import pytest
from django.core.exceptions import ImproperlyConfigured

from corecube import env


def test_a_missing_variable_gives_the_default(monkeypatch):
    monkeypatch.delenv("CUBE", raising=False)
    assert env.text("CUBE", "fallback") == "fallback"


def test_spaces_around_a_value_do_not_count(monkeypatch):
    monkeypatch.setenv("CUBE", "  blue ")
    assert env.text("CUBE") == "blue"


def test_a_secret_is_read_from_the_file_that_is_named(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("hush\n")
    monkeypatch.setenv("CUBE_FILE", str(tmp_path / "secret"))
    assert env.text("CUBE", "fallback") == "hush"


def test_a_secret_file_that_is_missing_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("CUBE_FILE", str(tmp_path / "nothing"))
    with pytest.raises(ImproperlyConfigured, match="CUBE_FILE"):
        env.text("CUBE")


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("FALSE", False)]
)
def test_yes_and_no_are_read_in_their_usual_forms(monkeypatch, value, expected):
    monkeypatch.setenv("CUBE", value)
    assert env.flag("CUBE", default=not expected) is expected


def test_an_empty_value_gives_the_default(monkeypatch):
    monkeypatch.setenv("CUBE", "")
    assert env.flag("CUBE", default=True) is True
    assert env.integer("CUBE", 7, low=0, high=9) == 7


def test_junk_for_yes_or_no_is_refused(monkeypatch):
    monkeypatch.setenv("CUBE", "maybe")
    with pytest.raises(ImproperlyConfigured, match="CUBE must be yes or no"):
        env.flag("CUBE", default=True)


@pytest.mark.parametrize("value", ["0", "10", "-1", "many", "1.5"])
def test_a_number_out_of_range_or_no_number_is_refused(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must"):
        env.integer("CUBE", 5, low=1, high=9)


@pytest.mark.parametrize("value", ["1", "9"])
def test_both_ends_of_a_range_are_allowed(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    assert env.integer("CUBE", 5, low=1, high=9) == int(value)


def test_a_list_loses_its_blanks(monkeypatch):
    monkeypatch.setenv("CUBE", " a, ,b,")
    assert env.texts("CUBE") == ["a", "b"]


def test_a_path_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUBE", "data")
    assert env.path("CUBE", tmp_path) == tmp_path / "data"
    monkeypatch.setenv("CUBE", "~/data")
    assert str(env.path("CUBE", tmp_path)) == os.path.expanduser("~/data")  # noqa: PTH111 -- another way to the same


def test_a_folder_for_data_is_made(tmp_path):
    assert env.usable_folder(tmp_path / "a" / "b").is_dir()


def test_a_place_where_no_folder_can_be_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match="CORECUBE_VAR_DIR"):
        env.usable_folder(tmp_path / "file" / "var")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_this_user_cannot_write_to_is_refused(tmp_path):
    (tmp_path / "var").mkdir(mode=0o500)
    with pytest.raises(ImproperlyConfigured, match="CORECUBE_VAR_DIR"):
        env.usable_folder(tmp_path / "var")


def test_a_choice_is_read_in_any_case_and_has_a_default(monkeypatch):
    monkeypatch.setenv("CUBE", "blue")
    assert env.choice("CUBE", "RED", ["RED", "BLUE"]) == "BLUE"
    monkeypatch.setenv("CUBE", "")
    assert env.choice("CUBE", "RED", ["RED", "BLUE"]) == "RED"


def test_a_choice_in_small_letters_stays_as_it_is_offered(monkeypatch):
    monkeypatch.setenv("CUBE", "Blue")
    assert env.choice("CUBE", "", ["red", "blue"]) == "blue"


@pytest.mark.parametrize("value", ["", "small-bert_reranker.v2", "A1"])
def test_a_folder_name_is_taken_as_it_is(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    assert env.folder_name("CUBE") == value


@pytest.mark.parametrize("value", ["..", ".hidden", "a/b", "/etc", "a b", "modèle", "a\\b"])
def test_what_leads_out_of_a_folder_is_no_name(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must be a name"):
        env.folder_name("CUBE")


@pytest.mark.parametrize(
    "value", ["", "http://tei:8080/rerank", "https://api.example.org/v2/rerank?a=b", "http://[::1]/x"]
)
def test_an_address_is_taken_as_it_is(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    assert env.url("CUBE") == value


@pytest.mark.parametrize(
    "value",
    [
        "tei:8080",
        "ftp://hush/x",
        "http://",
        "http:///x",
        "http://hush:port/",
        "http://[hush/",
        "http://a b/hush",
        "http://hüsh/",
    ],
)
def test_what_is_no_address_is_refused_without_being_repeated(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must be a URL") as caught:
        env.url("CUBE")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("value", ["https://me:hush@host/x", "https://hush@host/x", "https://:hush@host/x"])
def test_an_address_with_a_password_is_refused_without_being_repeated(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="must not contain a user or password") as caught:
        env.url("CUBE")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("value", ["redis://:hush@host:6380/1", "rediss://host", "unix:///run/redis.sock?db=2", ""])
def test_the_address_of_redis_is_taken_as_it_is_and_not_recorded(monkeypatch, value):
    monkeypatch.setenv("CUBE_REDIS", value)
    assert env.redis_url("CUBE_REDIS") == value
    assert "hush" not in str(env.readings())


@pytest.mark.parametrize("value", ["hush", "sentinel://hush", "redis://hush:port/0", "redis://[hush/0"])
def test_what_is_no_address_of_redis_is_refused_without_being_repeated(monkeypatch, value):
    monkeypatch.setenv("CUBE_REDIS", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE_REDIS must be an address such as") as caught:
        env.redis_url("CUBE_REDIS")
    assert "hush" not in str(caught.value)


def test_a_token_is_taken_as_it_is(monkeypatch):
    monkeypatch.setenv("CUBE", "sk-Hush_123/+=")
    assert env.token("CUBE") == "sk-Hush_123/+="


@pytest.mark.parametrize("value", ["hush hush", "hush\nX-Other: 1", "hüsh", "hush\x7f"])
def test_a_token_that_no_header_can_hold_is_refused_without_being_repeated(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must consist of visible ASCII characters") as caught:
        env.token("CUBE")
    assert "hush" not in str(caught.value)


def test_what_is_no_choice_is_refused(monkeypatch):
    monkeypatch.setenv("CUBE", "green")
    with pytest.raises(ImproperlyConfigured, match="CUBE must be one of RED, BLUE, not 'green'"):
        env.choice("CUBE", "RED", ["RED", "BLUE"])


@pytest.mark.parametrize("value", ["english", "My_dict2", "public.german"])
def test_a_plain_name_may_have_a_schema(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    assert env.identifier("CUBE", "simple") == value


@pytest.mark.parametrize("value", ["a b", "english'; --", "a.b.c", ".a", "2nd", "größe", 'x"'])
def test_what_is_no_plain_name_is_refused(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must be a name"):
        env.identifier("CUBE", "simple")


def reading(name):
    return next(it for it in env.readings() if it.name == name)


def test_what_was_read_is_told_with_its_origin(monkeypatch, tmp_path):
    monkeypatch.delenv("CUBE_SIDE", raising=False)
    env.integer("CUBE_SIDE", 7, low=0, high=10)
    assert (reading("CUBE_SIDE").value, reading("CUBE_SIDE").origin) == ("7", env.Origin.DEFAULT)
    assert not reading("CUBE_SIDE").is_locked
    monkeypatch.setenv("CUBE_SIDE", "9")
    env.integer("CUBE_SIDE", 7, low=0, high=10)
    assert (reading("CUBE_SIDE").value, reading("CUBE_SIDE").origin) == ("9", env.Origin.ENVIRONMENT)
    assert reading("CUBE_SIDE").is_locked
    (tmp_path / "colour").write_text("blue")
    monkeypatch.setenv("CUBE_COLOUR_FILE", str(tmp_path / "colour"))
    env.text("CUBE_COLOUR", "red")
    assert (reading("CUBE_COLOUR").value, reading("CUBE_COLOUR").origin) == ("blue", env.Origin.FILE)


def test_of_a_secret_only_its_presence_is_told(monkeypatch):
    monkeypatch.setenv("CUBE_TOKEN", "sesame")
    monkeypatch.setenv("CUBE_DATABASE", "postgres://ali:sesame@host/baba")
    monkeypatch.setenv("CUBE_URL", "https://host/path?key=sesame")
    assert (env.token("CUBE_TOKEN"), env.secret("CUBE_DATABASE")) == ("sesame", "postgres://ali:sesame@host/baba")
    assert env.url("CUBE_URL") == "https://host/path?key=sesame"
    assert reading("CUBE_TOKEN").value == reading("CUBE_DATABASE").value == "set"
    assert reading("CUBE_URL").value == "https://host/path"
    monkeypatch.delenv("CUBE_TOKEN")
    env.token("CUBE_TOKEN")
    assert reading("CUBE_TOKEN").value == "not set"
    assert "sesame" not in str(env.readings())


@pytest.mark.parametrize(("value", "shown"), [("yes", "yes"), ("0", "no")])
def test_a_switch_is_told_in_words(monkeypatch, value, shown):
    monkeypatch.setenv("CUBE_SPINS", value)
    env.flag("CUBE_SPINS", default=False)
    assert reading("CUBE_SPINS").value == shown


def test_a_list_is_told_with_commas(monkeypatch):
    monkeypatch.setenv("CUBE_FACES", "a,b")
    assert env.texts("CUBE_FACES") == ["a", "b"]
    assert reading("CUBE_FACES").value == "a, b"


@pytest.mark.parametrize("value", ["", "*", "127.0.0.1", "10.0.0.0/8, 2001:db8::/32"])
def test_networks_are_read(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    assert ", ".join(env.networks("CUBE")) == value


@pytest.mark.parametrize("value", ["proxy.example.org", "10.0.0.1/8", "*, 10.0.0.1", "10.0.0.300"])
def test_what_is_no_network_is_refused(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must contain addresses"):
        env.networks("CUBE")


def test_origins_are_read_without_a_last_slash(monkeypatch):
    monkeypatch.setenv("CUBE", "https://Chat.example.org/, http://localhost:3000,http://[::1]:80")
    assert env.origins("CUBE") == ["https://chat.example.org", "http://localhost:3000", "http://[::1]:80"]
    monkeypatch.delenv("CUBE")
    assert env.origins("CUBE") == []


@pytest.mark.parametrize(
    "value", ["*", "chat.example.org", "https://x/path", "https://u:p@x", "null", "https://x https://y"]
)
def test_what_is_no_origin_is_refused(monkeypatch, value):
    monkeypatch.setenv("CUBE", value)
    with pytest.raises(ImproperlyConfigured, match="CUBE must be origins"):
        env.origins("CUBE")
