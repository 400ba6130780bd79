"""Writing down what answers took."""

import logging
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from asgiref.sync import sync_to_async
from django.db import DatabaseError, transaction

from corecube.database import release_connection
from retrieval.llm.model_provider import Spend
from retrieval.llm.types import TokenUsage
from retrieval.models import LanguageModel, Usage

logger = logging.getLogger(__name__)

#: Prices are those of so many tokens.
_PRICED: Final = 1_000_000
_PLACES: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Account:
    """Who is charged for an answer."""

    user_id: int
    key_id: uuid.UUID | None = None
    record_id: uuid.UUID | None = None
    #: Keys of what was stored, for whoever has to say later what for; of nobody else's interest.
    noted: list[int] = field(default_factory=list, compare=False)

    def with_model(self, model: LanguageModel) -> Spend:
        """Return what notes the answers of a model on this account."""

        async def spend(usage: TokenUsage, seconds: float) -> None:
            await sync_to_async(self._write)(model, usage, seconds)

        return spend

    def _write(self, model: LanguageModel, usage: TokenUsage, seconds: float) -> None:
        """Store the usage. Where the database does not answer the numbers go to the log, and the answer stands."""
        try:
            # In a transaction of its own: a failure must not end one around it.
            with transaction.atomic():
                self.write(model, usage, seconds)
        except DatabaseError:
            numbers = (model.slug, self.user_id, self.key_id, usage.prompt, usage.completion)
            logger.exception("usage.lost model=%s user=%s key=%s prompt=%d completion=%d", *numbers)
        release_connection()

    def write(self, model: LanguageModel, usage: TokenUsage, seconds: float) -> Usage:
        """Store what an answer took and return it; raise DatabaseError."""
        used = Usage.objects.create(
            user_id=self.user_id,
            key_id=self.key_id,
            record_id=self.record_id,
            language_model=model,
            model_name=model.name,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            is_estimated=usage.is_estimated,
            cost=cost_of(model, usage),
            seconds=seconds,
        )
        self.noted.append(used.pk)
        return used


def cost_of(model: LanguageModel, usage: TokenUsage) -> Decimal:
    """Return what tokens cost by a model's prices, to a millionth of the installation's currency."""
    total = usage.prompt * Decimal(model.prompt_price) + usage.completion * Decimal(model.completion_price)
    return (total / _PRICED).quantize(_PLACES)
