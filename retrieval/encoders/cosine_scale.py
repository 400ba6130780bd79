"""How near a text is to a query on a scale that holds for every embedding model.

Models differ in the cosine that they give to texts that have nothing to do with each other: with one it is 0, with
another 0.4. Floors, grades and cliffs are numbers on a scale where such texts lie at 0.
"""

import logging
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Final

import numpy as np

from retrieval.encoders.protocol import Encoder
from retrieval.engine.types import Hit
from retrieval.errors import EncoderError

logger = logging.getLogger(__name__)

#: The signal of a hit that another model than the searched index's found: what unrelated texts have there.
NOISE: Final = "cosine_noise"

#: A model that gives all texts nearly the same vector leaves no scale.
_MAX_NOISE: Final = 0.95
_TRY_SECONDS: Final = 60.0
#: A question and a passage of each of several subjects; those of different subjects have
#: nothing to do with each other, and no word in common.
_SUBJECTS: Final = (
    (
        "sourdough baking time",
        "Bake the loaf in a covered pot for half an hour, then uncovered until the crust is brown and sounds hollow.",
    ),
    (
        "office building net operating income",
        "Rents rose by three percent in the last quarter, while vacancies and the cost of repairs stayed as they were.",
    ),
    (
        "account login reset",
        "Open the settings, choose the user, and send a link by which a new password can be set within a day.",
    ),
    (
        "pollen allergy symptoms",
        "Sneezing, itching eyes and a running nose begin in spring, when birch and hazel are in flower.",
    ),
    (
        "chapel ceiling painter",
        "The fresco was finished in four years; its figures were restored and the colours came back with their light.",
    ),
    (
        "front wheel bolt torque",
        "Tighten the five nuts crosswise by hand, lower the jack, and then use the wrench as the table says.",
    ),
    (
        "employee resignation notice period",
        "Either party may end this contract in writing; holidays that were not taken are paid with the last salary.",
    ),
    (
        "outer planets moons",
        "Beneath a crust of ice lies an ocean of salt water, kept from freezing by the pull of the giant it circles.",
    ),
)


@dataclass(frozen=True, slots=True)
class CosineScale:
    """Where the cosines of a model begin to mean something."""

    #: What unrelated texts have on average, from 0 to below 1.
    noise: float = 0.0
    #: Whether that was measured with the model; else cosines are taken as they are.
    is_measured: bool = False

    def nearness(self, cosine: float) -> float:
        """Return a cosine on the scale of all models: 0 for what unrelated texts have and less, 1 for the same text."""
        return _nearness(cosine, self.noise)

    def nearness_of(self, hit: Hit) -> float | None:
        """Return a hit's nearness by the model that found it; None where its cosine is not known."""
        cosine = hit.signals.get("cosine")
        return None if cosine is None else _nearness(cosine, hit.signals.get(NOISE, self.noise))

    def __str__(self) -> str:
        """Return what the trace says of it."""
        if not self.is_measured:
            return "cosines taken as they are"
        return f"cosine {self.noise:.2f} counts as 0"


#: The scale on which a cosine counts as what it is.
AS_IT_IS: Final = CosineScale()


def _nearness(cosine: float, noise: float) -> float:
    return max(0.0, (cosine - noise) / (1 - noise))


def measured_scale(encoder: Encoder) -> CosineScale:
    """Return the scale of a model by the mean cosine of questions and passages of different subjects.

    Raises EncoderError if the model fails.
    """
    queries = np.stack([encoder.encode_query(query) for query, _ in _SUBJECTS])
    passages = encoder.encode_documents([passage for _, passage in _SUBJECTS])
    cosines = queries @ passages.T
    unrelated = cosines[~np.eye(len(_SUBJECTS), dtype=bool)]
    return CosineScale(min(max(0.0, float(unrelated.mean())), _MAX_NOISE), is_measured=True)


@dataclass
class CosineScales:
    """The scales of a process's models, each measured once. Safe to share between threads."""

    _known: dict[tuple[str, str], CosineScale] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _tries_from: float = 0.0

    def known(self, encoder: Encoder) -> CosineScale:
        """Return the scale of a model; the cosines as they are while it has not been measured."""
        return self._known.get((encoder.name, encoder.weights), AS_IT_IS)

    def measured(self, encoder: Encoder) -> CosineScale:
        """Return the scale of a model, asking it for sixteen vectors the first time; raise EncoderError."""
        with self._lock:
            found = self._known.get((encoder.name, encoder.weights))
            if found is None:
                found = self._known[encoder.name, encoder.weights] = measured_scale(encoder)
            return found

    def measure_beside(self, encoder: Encoder) -> None:
        """Measure a model that is not known in a thread of its own; one that fails is tried again after a minute."""
        if (encoder.name, encoder.weights) in self._known or monotonic() < self._tries_from:
            return
        self._tries_from = monotonic() + _TRY_SECONDS
        Thread(target=self._try, args=(encoder,), name="cosine-scale", daemon=True).start()

    def _try(self, encoder: Encoder) -> None:
        try:
            self.measured(encoder)
        except EncoderError as error:
            logger.info("cosine_scale.left_out model=%s error=%s", encoder.name, type(error).__name__)
