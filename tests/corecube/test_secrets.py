import pytest
from hypothesis import given
from hypothesis import strategies as st

from corecube.errors import ConfigError
from corecube.secrets import Purpose, seal, unseal

SECRETS = {"token": "zanzibar-4711"}


@given(st.dictionaries(st.text(max_size=20), st.text(st.characters(codec="utf-8"), max_size=50), max_size=5))
def test_what_is_sealed_opens_as_it_was(secrets):
    assert unseal(seal(secrets)) == secrets


def test_a_token_shows_nothing_and_is_never_the_same_twice():
    first, second = seal(SECRETS), seal(SECRETS)
    assert first != second
    assert "zanzibar" not in first


def test_nothing_is_sealed_as_nothing():
    assert (seal({}), unseal("")) == ("", {})


def test_another_secret_key_opens_nothing_until_the_old_one_is_a_fallback(settings):
    token = seal(SECRETS)
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another"
    with pytest.raises(ConfigError, match="SECRET_KEY has changed") as caught:
        unseal(token)
    assert "zanzibar" not in str(caught.value)
    settings.SECRET_KEY_FALLBACKS = [old]
    renewed = seal(unseal(token))
    settings.SECRET_KEY_FALLBACKS = []
    assert unseal(renewed) == SECRETS


@pytest.mark.parametrize("change", [lambda it: it[:-4], lambda it: "A" + it[1:], lambda _: "junk", lambda _: "ü"])
def test_a_token_that_was_tampered_with_is_refused(change):
    with pytest.raises(ConfigError):
        unseal(change(seal(SECRETS)))


@pytest.mark.parametrize("secrets", [{"token": 1}, {"token": "x" * 20_001}])
def test_what_is_no_mapping_of_short_texts_is_refused(secrets):
    with pytest.raises(ConfigError):
        seal(secrets)


def test_a_token_opens_for_its_own_purpose_only():
    token = seal(SECRETS, Purpose.LANGUAGE_MODEL)
    assert unseal(token, Purpose.LANGUAGE_MODEL) == SECRETS
    again = seal(unseal(token, Purpose.LANGUAGE_MODEL), Purpose.LANGUAGE_MODEL)
    assert unseal(again, Purpose.LANGUAGE_MODEL) == SECRETS
    with pytest.raises(ConfigError, match="language model"):
        unseal(seal(SECRETS), Purpose.LANGUAGE_MODEL)
    with pytest.raises(ConfigError, match="connection"):
        unseal(token)
