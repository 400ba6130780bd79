import pytest
from django.contrib.auth import authenticate

from corecube.models import AuditEvent, User
from corecube.people import ADMINISTRATORS, ensure_first_admin

pytestmark = pytest.mark.django_db


def test_the_first_admin_can_sign_in_with_the_drawn_password():
    account = ensure_first_admin()
    user = authenticate(username=account.username, password=account.password)
    assert user.is_admin
    assert user.is_superuser
    assert [group.name for group in user.groups.all()] == [ADMINISTRATORS]


def test_there_is_one_first_admin():
    assert ensure_first_admin() is not None
    assert ensure_first_admin() is None
    assert User.objects.count() == 1


def test_somebody_elses_admin_is_enough():
    User.objects.create_superuser("ada", password="p")
    assert ensure_first_admin() is None


def test_a_user_who_is_called_admin_is_left_alone():
    User.objects.create_user("admin", password="p")
    assert ensure_first_admin() is None
    assert not User.objects.get().is_staff


def test_the_password_is_kept_nowhere():
    account = ensure_first_admin()
    event = AuditEvent.objects.get(action="user.first_admin")
    assert account.password not in f"{event.subject} {event.details} {User.objects.get().password}"
