"""The score breakdown of a hit ranked by several signals: raw value, normalised value and weight of each."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from corecube.scope import TrustLevel
from explorer import wording
from explorer.components.ledger_rows import LedgerRow
from explorer.wording import WORDS
from retrieval.engine.types import ChunkId, Hit, Lift, MemoryType
from retrieval.presets.helix.config import HelixConfig
from retrieval.presets.helix.stages.signals import RankedAs
from retrieval.ranking.signals import SIGNALS, WRITTEN, last_read, last_touched
from retrieval.search.outcome import SearchOutcome

_REPLACED: Final = "counted before reranking only"
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_ELSEWHERE: Final = "a passage not shown"
_MAX_CHARACTERS: Final = 200
_MAX_LIFTS: Final = 4
#: The text of a lift; {source} is the hit that it comes from.
_WORDS: Final = WORDS["lifts"]


def signal_rows(hit: Hit, outcome: SearchOutcome) -> Iterator[LedgerRow]:
    """Yield a row for each signal; their amounts sum to the score. Expects a completed hit."""
    memory_type = (outcome.state.part(RankedAs) or RankedAs(MemoryType.SEMANTIC)).memory_type
    for signal in SIGNALS:
        amount = hit.contributions.get(signal)
        yield LedgerRow(
            signal=signal,
            label=wording.signal_label(signal),
            value="" if amount is None else f"{amount:+.3f}",
            facts=_FACTS[signal](hit, outcome),
            formula=_REPLACED
            if amount is None and "rerank" in hit.contributions
            else _formula(amount, outcome.state.weights[signal], f"{memory_type} items"),
            config_key=f"signals.{memory_type}.{signal}",
            terms=hit.matches if signal == "similarity" else (),
            absent=amount is None,
            amount=amount,
        )


def _formula(amount: float | None, weight: float, items: str) -> str:
    """Return "0.4 x 0.730 min-max normalised": the weight, for which items, and the normalised signal."""
    if amount is None:
        return "unknown, so nothing is added"
    share = amount / weight if weight else 0.0
    return f"{weight:g} {_TIMES} {share:.3f} min-max normalised, for {items}"


def _similarity(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:
    names = {"cosine": "cosine", "fulltext": "full text", "sparse": "sparse"}
    raw = (f"{word} {hit.signals[name]:.3f}" for name, word in names.items() if name in hit.signals)
    legs = (
        f"rank {rank} of {len(outcome.state.rankings.get(leg, ()))} in {wording.leg_label(leg)}"
        for leg, rank in hit.ranks.items()
    )
    share = hit.signals.get(WRITTEN, 0.0)
    written = (f"contains {share:.0%} of the code terms of the query",) if share else ()
    return (*raw, *legs, *written)


def _recency(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:
    chunk, config, now = hit.chunk, outcome.config, outcome.state.now
    to_the_day = not outcome.state.is_admin
    read = "read, to the day" if to_the_day else "read"
    is_read = last_read(chunk, now, to_the_day=to_the_day) is not None
    then = read if is_read else "changed" if chunk.modified_at else "synced"
    hours = max(0.0, (now - last_touched(chunk, now, to_the_day=to_the_day)).total_seconds() / 3600)
    decay = config.signals.hourly_decay if isinstance(config, HelixConfig) else 1.0
    return (f"{hours:,.0f} hours since it was last {then}", f"{decay:g}^{hours:,.0f} = {hit.signals['recency']:.3f}")


def _salience(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:  # noqa: ARG001 -- one of several
    if hit.chunk.salience is None:
        return ("not computed yet: its sync is not finished",)
    return (f"covers {hit.chunk.salience:.2f} of the topic of its document",)


def _confidence(hit: Hit, outcome: SearchOutcome) -> tuple[str, ...]:
    trust: TrustLevel = outcome.state.scope.inclusion(hit.chunk.connection_id).connection.trust
    confirmed = "confirmed by a person" if hit.chunk.is_confirmed else "not confirmed by a person"
    return (f"{wording.level(trust)} source", confirmed, f"{hit.signals['confidence']:.2f}")


def lift_facts(hit: Hit, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return a clause for each of a hit's greatest lifts, and one for the sum of the others.

    `hits` are those shown, in order; their ranks name the sources.
    """
    if not hit.lifts:
        return ("not linked from any hit and not named in the query",)
    places = {shown.chunk_id: f"#{place}" for place, shown in enumerate(hits, start=1)}
    lifts = sorted(hit.lifts, key=lambda lift: -lift.amount)
    rest = [lift.amount for lift in lifts[_MAX_LIFTS:]]
    more = (f"and {len(rest)} more: {math.fsum(rest):+.3f}",) if rest else ()
    return (*(_lift_text(lift, places) for lift in lifts[:_MAX_LIFTS]), *more)


def _lift_text(lift: Lift, places: Mapping[ChunkId, str]) -> str:
    source = _ELSEWHERE if lift.source is None else places.get(lift.source, _ELSEWHERE)
    words = _WORDS.get(lift.kind, lift.kind.replace("_", " ")).format(source=source)
    name = f" {_quoted(lift.name)}" if lift.name else ""
    sentence = f" by: {_quoted(lift.sentence)}" if lift.sentence and lift.sentence != lift.name else ""
    return f"{words}{name}{sentence} {lift.amount:+.3f}"


def _quoted(text: str) -> str:
    short = (
        text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS].rpartition(' ')[0]} \N{HORIZONTAL ELLIPSIS}"
    )
    return f"\N{LEFT DOUBLE QUOTATION MARK}{short}\N{RIGHT DOUBLE QUOTATION MARK}"


_FACTS: Final[Mapping[str, Callable[[Hit, SearchOutcome], tuple[str, ...]]]] = {
    "similarity": _similarity,
    "recency": _recency,
    "salience": _salience,
    "confidence": _confidence,
    "graph": lambda hit, outcome: lift_facts(hit, outcome.hits),
}
