"""The lines that score ledgers are made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TermRow:
    """A query lexeme that the chunk holds."""

    lexeme: str
    idf: float
    share: float
    #: Where it stands at its heaviest: title, heading or text.
    field: str


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One line of the ledger."""

    #: Decides the colour.
    signal: str
    label: str
    #: What it comes to: "+0.438", "allowed".
    value: str
    #: The raw numbers, a clause each.
    facts: tuple[str, ...]
    formula: str = ""
    config_key: str = ""
    terms: tuple[TermRow, ...] = ()
    #: The leg did not return the hit.
    absent: bool = False
    #: The contribution in full precision; None for a row that adds nothing to the score.
    amount: float | None = None
