import itertools
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from corecube.access import Principal, ScopeRequest, scope_for
from corecube.errors import UnknownConnectionError
from corecube.models import ApiKey, Compartment, Connection, Grant
from corecube.models.access import key_digest
from corecube.scope import AccessScope, ConnectionFacts, Exclusion, FreshnessBasis, Inclusion, Sensitivity, TrustLevel


@pytest.fixture
def engineering(db):
    return Compartment.objects.create(slug="engineering", name="Engineering")


def make_connection(compartment, slug="runbooks", sensitivity=Sensitivity.CONFIDENTIAL, **fields):
    return Connection.objects.create(
        slug=slug, name=slug, kind="folder", compartment=compartment, sensitivity=sensitivity, **fields
    )


def slugs(scope):
    return [inclusion.connection.slug for inclusion in scope.included]


def test_without_a_grant_nothing_is_visible(people, engineering):
    make_connection(engineering, sensitivity=Sensitivity.PUBLIC)
    assert scope_for(Principal(people["bob"])).included == ()


def test_an_admin_without_a_grant_sees_no_more(people, engineering):
    make_connection(engineering, sensitivity=Sensitivity.PUBLIC)
    assert scope_for(Principal(people["alice"])).included == ()


@pytest.mark.parametrize(("clearance", "sensitivity"), list(itertools.product(Sensitivity, Sensitivity)))
def test_a_clearance_opens_its_level_and_below(people, engineering, clearance, sensitivity):
    make_connection(engineering, sensitivity=sensitivity)
    Grant.objects.create(user=people["bob"], compartment=engineering, clearance=clearance)
    assert bool(scope_for(Principal(people["bob"])).included) == (sensitivity <= clearance)


def test_a_grant_on_another_compartment_opens_nothing(people, engineering):
    make_connection(engineering)
    other = Compartment.objects.create(slug="finance", name="Finance")
    Grant.objects.create(user=people["bob"], compartment=other, clearance=Sensitivity.RESTRICTED)
    assert scope_for(Principal(people["bob"])).included == ()


def test_the_widest_of_own_and_group_grants_counts_and_is_named(people, engineering):
    make_connection(engineering)
    group = Group.objects.create(name="engineers")
    people["bob"].groups.add(group)
    Grant.objects.create(user=people["bob"], compartment=engineering, clearance=Sensitivity.INTERNAL)
    Grant.objects.create(group=group, compartment=engineering, clearance=Sensitivity.CONFIDENTIAL)
    (inclusion,) = scope_for(Principal(people["bob"])).included
    assert (inclusion.via, inclusion.clearance) == ("group engineers", Sensitivity.CONFIDENTIAL)


def test_leaving_the_group_closes_it_again(people, engineering):
    make_connection(engineering)
    group = Group.objects.create(name="engineers")
    people["bob"].groups.add(group)
    Grant.objects.create(group=group, compartment=engineering, clearance=Sensitivity.RESTRICTED)
    people["bob"].groups.clear()
    assert scope_for(Principal(people["bob"])).included == ()


def test_a_disabled_connection_is_out(people, engineering):
    make_connection(engineering, enabled=False)
    Grant.objects.create(user=people["bob"], compartment=engineering, clearance=Sensitivity.RESTRICTED)
    scope = scope_for(Principal(people["bob"]), reveal_excluded=True)
    assert [it.reason for it in scope.excluded] == [Exclusion.DISABLED]


def test_an_inactive_user_sees_nothing(people, engineering):
    make_connection(engineering)
    Grant.objects.create(user=people["bob"], compartment=engineering, clearance=Sensitivity.RESTRICTED)
    people["bob"].is_active = False
    assert scope_for(Principal(people["bob"])).included == ()


def test_excluded_connections_are_listed_with_their_rule_only_when_asked_for(people, engineering):
    make_connection(engineering, "vault", Sensitivity.RESTRICTED)
    make_connection(Compartment.objects.create(slug="finance", name="Finance"), "ledger")
    Grant.objects.create(user=people["bob"], compartment=engineering, clearance=Sensitivity.INTERNAL)
    assert scope_for(Principal(people["bob"])).excluded == ()
    revealed = scope_for(Principal(people["bob"]), reveal_excluded=True).excluded
    assert {(it.connection.slug, it.reason) for it in revealed} == {
        ("vault", Exclusion.CLEARANCE),
        ("ledger", Exclusion.NO_GRANT),
    }


class TestRequests:
    @pytest.fixture
    def bob(self, people, engineering):
        make_connection(engineering, "runbooks", Sensitivity.INTERNAL)
        make_connection(engineering, "platform", Sensitivity.INTERNAL)
        make_connection(engineering, "vault", Sensitivity.RESTRICTED)
        Grant.objects.create(user=people["bob"], compartment=engineering, clearance=Sensitivity.INTERNAL)
        return Principal(people["bob"])

    def test_a_request_narrows(self, bob):
        assert slugs(scope_for(bob, ScopeRequest(include=("platform",)))) == ["platform"]
        assert slugs(scope_for(bob, ScopeRequest(exclude=("platform",)))) == ["runbooks"]

    @pytest.mark.parametrize("slug", ["vault", "no-such-connection"])
    @pytest.mark.parametrize("side", ["include", "exclude"])
    def test_an_invisible_connection_and_an_unknown_one_are_the_same(self, bob, slug, side):
        with pytest.raises(UnknownConnectionError) as caught:
            scope_for(bob, ScopeRequest(**{side: (slug,)}))
        assert slug not in str(caught.value)


class TestKeys:
    @pytest.fixture
    def key(self, people, engineering):
        make_connection(engineering, "runbooks", Sensitivity.INTERNAL)
        make_connection(engineering, "vault", Sensitivity.RESTRICTED)
        finance = Compartment.objects.create(slug="finance", name="Finance")
        make_connection(finance, "ledger", Sensitivity.INTERNAL)
        for compartment in (engineering, finance):
            Grant.objects.create(user=people["bob"], compartment=compartment, clearance=Sensitivity.RESTRICTED)
        return ApiKey.issue(user=people["bob"], name="robot")

    def found(self, secret):
        return ApiKey.objects.for_secret(secret)

    def test_a_key_without_narrowing_sees_what_its_user_sees(self, key):
        scope = scope_for(Principal(key[0].user, self.found(key[1])))
        assert sorted(slugs(scope)) == ["ledger", "runbooks", "vault"]

    def test_a_key_narrows_by_sensitivity_and_compartment(self, key, engineering):
        key[0].max_sensitivity = Sensitivity.INTERNAL
        key[0].save()
        key[0].compartments.add(engineering)
        assert slugs(scope_for(Principal(key[0].user, self.found(key[1])))) == ["runbooks"]

    def test_a_key_never_widens_its_user(self, key):
        Grant.objects.all().delete()
        assert scope_for(Principal(key[0].user, self.found(key[1]))).included == ()

    def test_only_a_digest_of_the_secret_is_stored(self, key):
        row = ApiKey.objects.filter(pk=key[0].pk).values().get()
        assert row["digest"] == key_digest(key[1])
        assert key[1] not in str(row)

    @pytest.mark.parametrize("change", ["revoked", "expired", "inactive"])
    def test_a_key_that_may_no_longer_be_used_is_not_found(self, key, change):
        past = timezone.now() - timedelta(seconds=1)
        if change == "revoked":
            key[0].revoked_at = past
        elif change == "expired":
            key[0].expires_at = past
        else:
            key[0].user.is_active = False
            key[0].user.save()
        key[0].save()
        assert self.found(key[1]) is None

    def test_a_wrong_secret_is_not_found(self, key):
        assert self.found(key[1] + "x") is None

    def test_presets_of_a_key(self, key):
        assert Principal(key[0].user, key[0]).may_use("corecube")
        key[0].presets = ["helix"]
        assert not Principal(key[0].user, key[0]).may_use("corecube")
        key[0].presets = "corecube and more"
        assert not Principal(key[0].user, key[0]).may_use("corecube")


def test_a_grant_names_a_user_or_a_group_and_not_both(people, engineering):
    both = Grant(
        user=people["bob"], group=Group.objects.create(name="g"), compartment=engineering, clearance=Sensitivity.PUBLIC
    )
    neither = Grant(compartment=engineering, clearance=Sensitivity.PUBLIC)
    for grant in (both, neither):
        with pytest.raises(ValidationError):
            grant.full_clean()


def facts(number):
    return ConnectionFacts(
        number, f"c{number}", f"C{number}", "X", Sensitivity.PUBLIC, TrustLevel.REFERENCE, 1.0, FreshnessBasis.SYNCED
    )


@given(st.sets(st.integers(1, 30)), st.sets(st.integers(1, 40)))
def test_narrowing_never_adds_a_connection(held, wanted):
    scope = AccessScope("bob", tuple(Inclusion(facts(it), "user bob", Sensitivity.PUBLIC) for it in held))
    narrowed = scope.only(wanted, reveal=True)
    assert set(narrowed.connection_ids) == held & wanted
    assert {it.connection.id for it in narrowed.excluded} == held - wanted
    assert scope.only(wanted, reveal=False).excluded == ()
