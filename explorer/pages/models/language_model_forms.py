"""Forms of language models and of the rules that choose among them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.forms import BoundField
from django.utils.text import slugify

from corecube.models import Compartment, User
from explorer.components.edit_form import EditForm
from retrieval.admin.language_models import LOCKED, fallback_choices, key_length, problems_of
from retrieval.llm.token_counters import tokenizers
from retrieval.models import LanguageModel

_GROUPS: Final = (
    (
        "What it may take",
        "Passages and conversation are cut to the context; an answer is never longer than its tokens.",
        ("context_tokens", "max_answer_tokens", "tokenizer", "temperature"),
    ),
    (
        "How long it may take",
        "Retries come before the first word and within the time of the whole answer.",
        ("timeout_seconds", "silence_seconds", "max_retries"),
    ),
    ("What it costs", "For the usage; leave 0 where nobody pays by the token.", ("prompt_price", "completion_price")),
    ("When it answers", "", ("fallback", "is_default", "is_enabled")),
)
_LABELS: Final = {
    "api": "Protocol",
    "base_url": "Address",
    "api_version": "API version",
    "model": "Model",
    "timeout_seconds": "Whole answer, seconds",
    "silence_seconds": "Silence, seconds",
    "max_retries": "Retries",
    "context_tokens": "Context, tokens",
    "max_answer_tokens": "Answer, tokens",
    "tokenizer": "Tokens are counted by",
    "prompt_price": "A million tokens read",
    "completion_price": "A million tokens written",
    "fallback": "When it fails, ask",
    "is_default": "Answers where no rule names another",
    "is_enabled": "Enabled",
}
_HELP: Final = {
    "silence_seconds": "Before its first token, and between two.",
    "tokenizer": "A folder of the models here with the model's own tokenizer.json.",
    "temperature": "0 says the likeliest; higher varies more.",
    "is_default": "",
    "fallback": "",
}


class LanguageModelForm(EditForm, forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """A language model, new or stored. What is filled in for the key is never shown again."""

    slug = forms.SlugField(
        required=False,
        max_length=50,
        help_text="How answers, programs and addresses name it; empty makes one from the name.",
        error_messages={"unique": "Another language model has this slug."},
    )
    # render_value stays off: what was typed is not sent back.
    api_key = forms.CharField(
        required=False,
        strip=True,
        max_length=4000,
        label="API key",
        widget=forms.PasswordInput(attrs={"class": "input", "autocomplete": "new-password", "spellcheck": "false"}),
    )
    drop_key = forms.BooleanField(required=False, label="Remove it")
    tokenizer = forms.ChoiceField(required=False, label=_LABELS["tokenizer"], help_text=_HELP["tokenizer"])

    class Meta:
        model = LanguageModel
        fields: ClassVar = [
            *("name", "slug", "api", "base_url", "api_version", "model", "context_tokens", "max_answer_tokens"),
            *("tokenizer", "temperature", "timeout_seconds", "silence_seconds", "max_retries"),
            *("prompt_price", "completion_price", "fallback", "is_default", "is_enabled"),
        ]
        labels: ClassVar = _LABELS
        help_texts: ClassVar = _HELP

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, instance: LanguageModel, others: Sequence[LanguageModel]
    ) -> None:
        super().__init__(data, instance=instance)
        self.key_length = key_length(instance)
        fallback = self.fields["fallback"]
        if isinstance(fallback, forms.ModelChoiceField):
            fallback.queryset = LanguageModel.objects.filter(
                pk__in=[it.pk for it in fallback_choices(instance, others)]
            )
            fallback.empty_label = "Nobody: the passages are quoted"
        tokenizer = self.fields["tokenizer"]
        if isinstance(tokenizer, forms.ChoiceField):
            names = dict.fromkeys([*tokenizers(), *([instance.tokenizer] if instance.tokenizer else [])])
            tokenizer.choices = [("", "The embedding model's tokenizer"), *((name, name) for name in names)]
        for name, field in self.fields.items():
            field.widget.attrs.setdefault("class", "check" if isinstance(field, forms.BooleanField) else "input")
            field.disabled = instance.is_locked and name in LOCKED | {"api_key", "drop_key"}

    @property
    def key(self) -> str | None:
        """The key that was filled in, empty for one that is to be removed, None for one that stays."""
        given: str = self.cleaned_data.get("api_key") or ""
        return given or ("" if self.cleaned_data.get("drop_key") or not self.instance.pk else None)

    def clean(self) -> dict[str, Any]:
        """Give a slug to who has none."""
        values = {**(super().clean() or {})}
        values["slug"] = values.get("slug") or slugify(values.get("name", ""))[:50].strip("-_")
        if not values["slug"] and "name" not in self.errors and "slug" not in self.errors:
            self.add_error("name", "The name needs a letter from a to z or a digit, or the slug has to be given.")
        return values

    def _get_validation_exclusions(self) -> set[str]:
        """Leave the default's uniqueness to saving, where the new one takes the place of the old."""
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]  # not in the stubs
        return excluded | {"is_default"}

    def _post_clean(self) -> None:
        """Check what Django's own checks of the row leave."""
        super()._post_clean()  # type: ignore[misc]  # Django's, and not in the stubs
        for name, words in problems_of(self.instance, self.key).items():
            place = name if name in self.fields else None
            if place is None or place not in self.errors:
                self.add_error(place, words)

    def identity(self) -> list[BoundField]:
        """Return the fields that name it."""
        return [self["name"], self["slug"]]

    def service(self) -> list[BoundField]:
        """Return the fields that say where it is."""
        return [self[name] for name in ("api", "base_url", "model", "api_version")]

    def groups(self) -> Iterator[dict[str, object]]:
        """Yield the other settings in groups."""
        for heading, note, names in _GROUPS:
            yield {"heading": heading, "note": note, "fields": [self[name] for name in names]}


class RuleForm(forms.Form):
    """A rule for one user or for one compartment."""

    _NOBODY: ClassVar = "none"

    compartment = forms.ModelChoiceField(
        Compartment.objects.order_by("name"),
        required=False,
        empty_label="Choose one",
        widget=forms.Select(attrs={"class": "input"}),
    )
    user = forms.CharField(
        required=False,
        max_length=150,
        widget=forms.TextInput(attrs={"class": "input", "autocomplete": "off", "autocapitalize": "none"}),
    )
    language_model = forms.ChoiceField(label="Language model", widget=forms.Select(attrs={"class": "input"}))

    def __init__(self, data: Mapping[str, Any] | None = None, *, models: Sequence[LanguageModel]) -> None:
        super().__init__(data)
        self._models = {model.slug: model for model in models}
        choice = self.fields["language_model"]
        if isinstance(choice, forms.ChoiceField):
            choice.choices = [
                *((model.slug, model.name) for model in models),
                (self._NOBODY, "No language model: passages are quoted"),
            ]

    @property
    def model(self) -> LanguageModel | None:
        """The model that was chosen."""
        return self._models.get(self.cleaned_data["language_model"])

    @property
    def owner(self) -> User | Compartment:
        """Whom the rule concerns."""
        owner: User | Compartment = self.cleaned_data["owner"]
        return owner

    def clean(self) -> dict[str, Any]:
        """Find the one user or compartment."""
        values = super().clean() or self.cleaned_data
        name = values.get("user", "").replace("\0", "")
        user = User.objects.filter(username=name).first() if name else None
        if name and user is None:
            self.add_error("user", "There is no user of that name.")
        elif (user is None) == (values.get("compartment") is None):
            self.add_error(None, "A rule belongs to one user or to one compartment.")
        return {**values, "owner": user or values.get("compartment")}
