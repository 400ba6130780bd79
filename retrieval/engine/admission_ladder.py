"""The admission ladder: which queries are refused as the connection pool fills up."""

import math
from dataclasses import dataclass
from enum import StrEnum

from corecube.errors import ConfigError
from retrieval.engine.tunables import Tunables, tunable


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolConfig(Tunables):
    """The connections of searches and ingests. Raises ConfigError if their shares exceed the total."""

    connections: int = tunable(96, low=32, high=10_000, unit="connections", help="Maximum connections in use.")
    retrieval_slots: int = tunable(
        16, low=16, high=1000, unit="slots", help="Connections reserved for searches.", at_most="connections"
    )
    ingest_slots: int = tunable(
        16, low=16, high=1000, unit="slots", help="Connections reserved for ingests.", at_most="connections"
    )

    def __post_init__(self) -> None:
        Tunables.__post_init__(self)
        if self.retrieval_slots + self.ingest_slots > self.connections:
            raise ConfigError("PoolConfig: retrieval_slots and ingest_slots must not exceed connections together.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderConfig(Tunables):
    """Which queries are refused at which share of the pool. Raises ConfigError for rungs out of order.

    triage < hard_reject <= short_budget_reject < recovery_skip, and a triaged budget is the shorter one.
    """

    triage: float = tunable(0.80, low=0.1, high=1.0, help="Share from which searches with little time are rejected.")
    triage_seconds: float = tunable(
        2.0, low=0.0, high=60.0, unit="s", help="Time below which triage applies.", at_most="short_budget_seconds"
    )
    hard_reject: float = tunable(
        0.88,
        low=0.1,
        high=1.0,
        help="Share from which searches are rejected, except for missing source types.",
        at_most="short_budget_reject",
    )
    short_budget_reject: float = tunable(
        0.90, low=0.1, high=1.0, help="Share from which all searches with little time are rejected."
    )
    short_budget_seconds: float = tunable(12.0, low=0.0, high=600.0, unit="s", help="Time that counts as short.")
    recovery_skip: float = tunable(
        0.92, low=0.1, high=1.0, help="Share from which no recovery starts for an aborted search."
    )

    def __post_init__(self) -> None:
        Tunables.__post_init__(self)
        if not self.triage < self.hard_reject:
            raise ConfigError("LadderConfig.triage must be below hard_reject.")
        if not self.short_budget_reject < self.recovery_skip:
            raise ConfigError("LadderConfig.short_budget_reject must be below recovery_skip.")


class Purpose(StrEnum):
    """The purpose of a query, in rising priority."""

    PRIMARY = "primary"
    DIVERSITY = "diversity"  #: Searches a missing source type: exempt from the hard rejection.
    RECOVERY = "recovery"  #: Recovers an empty or one-sided pool: refused only by a full pool.


class Refusal(StrEnum):
    """Why a query is not admitted."""

    POOL_FULL = "pool_full"
    SHORT_BUDGET = "short_budget"
    HARD_REJECT = "hard_reject"
    TRIAGE = "triage"
    QUEUE = "queue"  #: The expected wait exceeds its budget.
    BUDGET_OVER = "budget_over"  #: Its budget was over before a slot was free.


class Rung(StrEnum):
    """The current rung of the ladder."""

    CALM = "calm"
    TRIAGE = "triage"
    HARD_REJECT = "hard_reject"
    SHORT_BUDGET = "short_budget"
    RECOVERY_SKIP = "recovery_skip"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Ladder:
    """Decides by the number of busy connections."""

    pool: PoolConfig
    config: LadderConfig
    fitting: int | None = None  #: Connections that the server allows, if fewer than configured; else None.

    @property
    def connections(self) -> int:
        """Available connections, at least 1."""
        wished: int = self.pool.connections
        return wished if self.fitting is None else max(1, min(self.fitting, wished))

    @property
    def spare(self) -> int:
        """Connections reserved for recovery and missing source types, at least 1: 12 of 96."""
        return max(1, self.connections - self.rung(self.config.hard_reject))

    def rung(self, share: float) -> int:
        """Return the number of connections at which a share is reached, rounded down: 88 % of 96 are 84."""
        return math.floor(share * self.connections + 1e-9)

    def reached(self, active: int) -> Rung:
        """Return the highest rung that this number of busy connections reaches."""
        config = self.config
        rungs = (
            (self.connections, Rung.FULL),
            (self.rung(config.recovery_skip), Rung.RECOVERY_SKIP),
            (self.rung(config.short_budget_reject), Rung.SHORT_BUDGET),
            (self.rung(config.hard_reject), Rung.HARD_REJECT),
            (self.rung(config.triage), Rung.TRIAGE),
        )
        return next((rung for minimum, rung in rungs if active >= minimum), Rung.CALM)

    def refusal(self, active: int, *, budget_seconds: float, purpose: Purpose = Purpose.PRIMARY) -> Refusal | None:
        """Return why a query is refused; None if it is admitted.

        `active` are the other busy connections, `budget_seconds` the time left. A full pool refuses everything, since a
        waiting recovery would starve the holders of connections.
        """
        if active >= self.connections:
            return Refusal.POOL_FULL
        if purpose is Purpose.RECOVERY:
            return None
        config = self.config
        if active >= self.rung(config.short_budget_reject) and budget_seconds < config.short_budget_seconds:
            return Refusal.SHORT_BUDGET
        if active >= self.rung(config.hard_reject) and purpose is not Purpose.DIVERSITY:
            return Refusal.HARD_REJECT
        if active >= self.rung(config.triage) and budget_seconds < config.triage_seconds:
            return Refusal.TRIAGE
        return None

    def skips_recovery(self, active: int) -> bool:
        """Return whether timed-out searches skip their recovery."""
        return active >= self.rung(self.config.recovery_skip)
