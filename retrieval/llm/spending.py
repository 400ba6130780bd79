"""Usage records of answers."""

import logging
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Final

from asgiref.sync import sync_to_async
from django.db import DatabaseError, transaction

from corecube.database import release_connection
from retrieval.llm.model_provider import RecordUsage
from retrieval.llm.types import TokenUsage
from retrieval.models import LanguageModel, Usage

logger = logging.getLogger(__name__)

_PRICE_UNIT: Final = 1_000_000
_PLACES: Final = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Account:
    """The account that is charged for an answer."""

    user_id: int
    key_id: uuid.UUID | None = None
    record_id: uuid.UUID | None = None
    usage_ids: list[int] = field(default_factory=list, compare=False)

    def recorder_for(self, model: LanguageModel) -> RecordUsage:
        """Return a function that records the usage of a model's answers on this account."""
        return sync_to_async(partial(self._write, model))

    def _write(self, model: LanguageModel, usage: TokenUsage, seconds: float) -> None:
        """Store the usage; after a database error the numbers are logged, and the answer remains valid."""
        try:
            # In a nested transaction: a failure must not break an outer one.
            with transaction.atomic():
                self.write(model, usage, seconds)
        except DatabaseError:
            numbers = (model.slug, self.user_id, self.key_id, usage.prompt, usage.completion)
            logger.exception("usage.not_stored model=%s user=%s key=%s prompt=%d completion=%d", *numbers)
        release_connection()

    def write(self, model: LanguageModel, usage: TokenUsage, seconds: float) -> Usage:
        """Store the usage of an answer and return the record; raise DatabaseError."""
        total = usage.prompt * Decimal(model.prompt_price) + usage.completion * Decimal(model.completion_price)
        used = Usage.objects.create(
            user_id=self.user_id,
            key_id=self.key_id,
            record_id=self.record_id,
            language_model=model,
            model_name=model.name,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            is_estimated=usage.is_estimated,
            cost=(total / _PRICE_UNIT).quantize(_PLACES),
            seconds=seconds,
        )
        self.usage_ids.append(used.pk)
        return used
