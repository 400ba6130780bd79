"""The scope's chips and table."""

from dataclasses import replace

import pytest

from corecube.scope import ConnectionFacts, ExcludedConnection, Exclusion, FreshnessBasis, Sensitivity, TrustLevel
from explorer.components.scope import scope_chips, scope_rows


@pytest.fixture
def scope(finished):
    return finished.state.scope


@pytest.fixture
def seen_by_admin(scope):
    payroll = ConnectionFacts(
        9, "payroll", "Payroll", "Finance", Sensitivity.RESTRICTED, TrustLevel.REFERENCE, 30.0, FreshnessBasis.SYNCED
    )
    return replace(scope, excluded=(ExcludedConnection(payroll, Exclusion.NO_GRANT),))


def test_a_chip_switches_its_connection_off(scope):
    chips = {chip["slug"]: chip for chip in scope_chips(scope, ())}
    assert chips["runbooks"]["included"]
    assert chips["runbooks"]["switched"] == ("runbooks",)


def test_a_chip_switches_its_connection_on_again_and_leaves_the_others(scope):
    chips = {chip["slug"]: chip for chip in scope_chips(scope, ("wiki", "runbooks"))}
    assert not chips["wiki"]["included"]
    assert chips["wiki"]["switched"] == ("runbooks",)


def test_a_connection_outside_the_scope_cannot_be_switched(seen_by_admin):
    chip = scope_chips(seen_by_admin, ())[-1]
    assert (chip["name"], chip["switched"], chip["why"]) == ("Payroll", None, "no clearance")
    assert chip["rule"] == "no clearance on compartment Finance"


def test_the_table_lists_what_is_in_scope_first(seen_by_admin):
    rows = scope_rows(scope_chips(seen_by_admin, ("runbooks",)))
    assert [(row["name"], row["included"]) for row in rows] == [("Wiki", True), ("Runbooks", False), ("Payroll", False)]
    assert rows[1]["rule"] == "excluded in this query"
