"""The form for a new embedding index."""

from collections.abc import Sequence
from typing import Any, Final

from django import forms

from retrieval.index.scans import MAX_OVERSAMPLE, ScanChoice
from retrieval.models import EmbeddingIndex

#: As in the settings: the limit of an index.
_MAX_DIMENSIONS: Final = 4000
_MODES: Final = (
    ("", "Default"),
    (EmbeddingIndex.Mode.CHUNK_FIRST, "Each chunk separately"),
    (EmbeddingIndex.Mode.LATE, "Late chunking"),
)
_SCANS: Final = (
    (EmbeddingIndex.Scan.HALFVEC, "Full vectors"),
    (EmbeddingIndex.Scan.INT8, "8-bit quantization with rescoring"),
    (EmbeddingIndex.Scan.BINARY, "Binary quantization with rescoring"),
    (EmbeddingIndex.Scan.PREFIX, "Truncated vectors with rescoring"),
)


class NewIndexForm(forms.Form):
    """Model and options of a new index."""

    model = forms.ChoiceField(widget=forms.Select(attrs={"class": "input"}))
    dimensions = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MAX_DIMENSIONS,
        help_text="Leave empty for all. Fewer only if the model supports it.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    mode = forms.ChoiceField(
        required=False, choices=_MODES, label="Chunk embedding", widget=forms.Select(attrs={"class": "input"})
    )

    scan = forms.ChoiceField(
        required=False,
        choices=_SCANS,
        label="Search precision",
        help_text="Quantized and truncated vectors need less memory but are less exact.",
        widget=forms.Select(attrs={"class": "input"}),
    )
    scan_dimensions = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=_MAX_DIMENSIONS,
        label="Truncated dimensions",
        help_text="Only for truncated vectors, if the model supports it.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )
    oversample = forms.FloatField(
        required=False,
        min_value=1,
        max_value=MAX_OVERSAMPLE,
        label="Candidates per hit",
        help_text="Leave empty for the default.",
        widget=forms.NumberInput(attrs={"class": "input"}),
    )

    def __init__(self, *args: Any, choices: Sequence[tuple[str, str]], **kwargs: Any) -> None:  # noqa: ANN401 -- Django's
        super().__init__(*args, **kwargs)
        model = self.fields["model"]
        if isinstance(model, forms.ChoiceField):
            model.choices = list(choices)

    @property
    def scan_choice(self) -> ScanChoice:
        """The search precision; only for a valid form."""
        values = self.cleaned_data
        scan = values["scan"] or EmbeddingIndex.Scan.HALFVEC
        return ScanChoice(scan, values["scan_dimensions"] or 0, values["oversample"] or 0.0)
