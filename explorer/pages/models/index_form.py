"""The form that begins an embedding index."""

from collections.abc import Sequence
from typing import Any, Final

from django import forms

from retrieval.index.scans import MAX_OVERSAMPLE, ScanChoice
from retrieval.models import EmbeddingIndex

#: As in the settings: no index holds longer vectors.
_MAX_DIMENSIONS: Final = 4000
_MODES: Final = (
    ("", "As configured"),
    (EmbeddingIndex.Mode.CHUNK_FIRST, "Each chunk by itself"),
    (EmbeddingIndex.Mode.LATE, "Late chunking"),
)
_SCANS: Final = (
    (EmbeddingIndex.Scan.HALFVEC, "Whole vectors"),
    (EmbeddingIndex.Scan.INT8, "A byte a component, then whole vectors"),
    (EmbeddingIndex.Scan.BINARY, "A bit a component, then whole vectors"),
    (EmbeddingIndex.Scan.PREFIX, "The first components, then whole vectors"),
)


class NewIndexForm(forms.Form):
    """With which model, and how, an index is built."""

    model = forms.ChoiceField(widget=forms.Select(attrs={"class": "input"}))
    dimensions = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MAX_DIMENSIONS,
        help_text="Empty keeps them all; fewer only for a model that allows it.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    mode = forms.ChoiceField(
        required=False, choices=_MODES, label="Vectors of", widget=forms.Select(attrs={"class": "input"})
    )

    scan = forms.ChoiceField(
        required=False,
        choices=_SCANS,
        label="Walked by",
        help_text="Less memory and less exact, from the second on.",
        widget=forms.Select(attrs={"class": "input"}),
    )
    scan_dimensions = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MAX_DIMENSIONS,
        label="First components",
        help_text="Only for a walk by these, and a model that allows it.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    oversample = forms.FloatField(
        required=False,
        min_value=1,
        max_value=MAX_OVERSAMPLE,
        label="Candidates for each hit",
        help_text="Empty takes the usual number.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )

    def __init__(self, *args: Any, choices: Sequence[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(*args, **kwargs)
        model = self.fields["model"]
        if isinstance(model, forms.ChoiceField):
            model.choices = list(choices)

    @property
    def scan_choice(self) -> ScanChoice:
        """What the index is to be walked by; for a valid form."""
        wanted = self.cleaned_data
        scan = wanted["scan"] or EmbeddingIndex.Scan.HALFVEC
        return ScanChoice(scan, wanted["scan_dimensions"] or 0, wanted["oversample"] or 0.0)
