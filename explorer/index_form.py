"""The form that begins an embedding index."""

from collections.abc import Sequence
from typing import Any, Final

from django import forms

from retrieval.models import EmbeddingIndex

#: As in the settings: no index holds longer vectors.
_MOST_DIMENSIONS: Final = 4000
_MODES: Final = (
    ("", "As configured"),
    (EmbeddingIndex.Mode.CHUNK_FIRST, "Each chunk by itself"),
    (EmbeddingIndex.Mode.LATE, "Late chunking"),
)


class NewIndexForm(forms.Form):
    """With which model, and how, an index is built."""

    model = forms.ChoiceField(widget=forms.Select(attrs={"class": "input"}))
    dimensions = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MOST_DIMENSIONS,
        help_text="Empty keeps them all; fewer only for a model that allows it.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    mode = forms.ChoiceField(
        required=False, choices=_MODES, label="Vectors of", widget=forms.Select(attrs={"class": "input"})
    )

    def __init__(self, *args: Any, choices: Sequence[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(*args, **kwargs)
        model = self.fields["model"]
        if isinstance(model, forms.ChoiceField):
            model.choices = list(choices)
