"""What a search with a draft differs in from what everybody else gets."""

from explorer.components.preset_numbers import ChangeRow, change_rows
from retrieval.search.configuration import configuration_of
from retrieval.search.outcome import SearchOutcome


def draft_changes(outcome: SearchOutcome) -> tuple[ChangeRow, ...]:
    """Return the numbers that the draft sets otherwise than the live version; none for a search without a draft."""
    if not outcome.configuration.is_draft:
        return ()
    return change_rows(configuration_of(outcome.preset).config, outcome.config)
