"""Choosing a user: all of them in a menu, by name in large installations."""

import pytest

from corecube.models import User
from explorer.components.user_menu import MAX_LISTED, user_boxes, user_menu, users_named


@pytest.fixture
def crowd(governed):
    """Add as many users as a menu lists."""
    return User.objects.bulk_create(
        User(username=f"user{number:03}", email=f"{number:03}@example.org") for number in range(MAX_LISTED)
    )


def test_a_menu_has_every_active_user_and_the_chosen_name(governed):
    User.objects.create_user("gone", is_active=False)
    assert user_menu(governed.alice).names == ("alice", "bob", "charlie")
    assert user_menu(governed.alice, "bob").names == ("alice", "bob", "charlie")
    assert user_menu(governed.alice, "nobody").names == ("alice", "bob", "charlie", "nobody")
    assert user_menu(governed.alice, with_inactive=True).names == ("alice", "bob", "charlie", "gone")


def test_only_an_admin_chooses(governed):
    assert user_menu(governed.bob) is None


def test_many_users_are_not_listed(governed, crowd):
    menu = user_menu(governed.alice, "bob")
    assert (len(menu.names), menu.is_whole) == (MAX_LISTED, False)


@pytest.mark.parametrize("text", ["ANN", "lee ann", "ann@", "example ann", "an\0n"])
def test_each_word_is_part_of_a_name(governed, text):
    ann = User.objects.create_user("ann", email="ann@example.org", first_name="Ann", last_name="Lee")
    User.objects.create_user("lee", last_name="Lee", email="lee@elsewhere.org")
    assert list(users_named(text)) == [ann]


def test_boxes_have_the_checked_users_whatever_the_text_is(governed, crowd):
    boxes = user_boxes([governed.bob.pk], "user00")
    assert boxes.checked == (governed.bob,)
    assert [it.username for it in boxes.others] == [f"user00{digit}" for digit in range(10)]
    assert boxes.unlisted == 0


def test_boxes_say_how_many_others_there_are(governed, crowd):
    boxes = user_boxes([])
    assert (len(boxes.others), boxes.unlisted) == (MAX_LISTED, 3)
    assert user_boxes([crowd[0].pk, crowd[1].pk, crowd[2].pk]).unlisted == 0
