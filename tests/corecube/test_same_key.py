"""Processes of one database with different secret keys; real ones are in tests/deploy/test_two_machines.py."""

from datetime import timedelta

import pytest
from django.db.models import F

from corecube import same_key
from corecube.errors import ConfigError
from corecube.models import KeyUse
from corecube.same_key import forget_key, note_key, require_same_key

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_noted():
    same_key._noted.clear()
    yield
    same_key._noted.clear()


@pytest.fixture
def elsewhere(settings):
    """Let a process with another key run elsewhere."""
    own, settings.SECRET_KEY = settings.SECRET_KEY, "tangerine"
    note_key()
    KeyUse.objects.update(host="web-1")
    settings.SECRET_KEY = own


def test_a_process_with_the_same_key_starts():
    note_key()
    KeyUse.objects.update(host="web-1")
    require_same_key()
    same_key._noted.clear()
    note_key()
    assert KeyUse.objects.count() == 2


def test_a_process_with_another_key_is_told_what_to_do(elsewhere):
    with pytest.raises(ConfigError, match=r"SECRET_KEY differs from that of web-1.*Set the same SECRET_KEY") as caught:
        require_same_key()
    assert "tangerine" not in str(caught.value)
    assert KeyUse.objects.count() == 1


def test_a_key_in_use_before_may_differ(elsewhere):
    KeyUse.objects.update(seen_at=F("seen_at") - timedelta(seconds=61))
    require_same_key()
    note_key()
    assert [it.host for it in KeyUse.objects.all()] != ["web-1"]


def test_a_process_that_ends_does_not_speak_for_others(elsewhere):
    note_key()
    forget_key()
    with pytest.raises(ConfigError):
        require_same_key()


def test_a_key_may_be_changed_where_its_processes_have_ended(settings):
    note_key()
    forget_key()
    settings.SECRET_KEY = "tangerine"
    require_same_key()


def test_an_earlier_process_of_the_same_number_has_ended(settings):
    note_key()
    settings.SECRET_KEY = "tangerine"
    require_same_key()


def test_a_fallback_is_no_other_key(elsewhere, settings):
    settings.SECRET_KEY_FALLBACKS = ["tangerine"]
    require_same_key()


def test_processes_that_started_at_the_same_moment_log_it(elsewhere, caplog):
    note_key()
    note_key()
    assert [it.getMessage() for it in caplog.records] == ["secret_key.differs hosts=web-1"]


def test_the_key_is_not_stored(settings):
    note_key()
    (stored,) = KeyUse.objects.values_list("key_id", flat=True)
    assert stored not in settings.SECRET_KEY
    assert settings.SECRET_KEY not in stored
