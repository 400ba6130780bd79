"""Forms of language models and routing rules."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django import forms
from django.forms import BoundField

from corecube.models import Compartment, User
from explorer.components.forms import ConsoleForm, SluggedForm
from retrieval.admin.language_models import LOCKED, key_length, problems_of
from retrieval.llm.token_counters import tokenizers
from retrieval.models import LanguageModel


class LanguageModelForm(SluggedForm):
    """A language model, new or stored. An entered key is never shown again."""

    slug = forms.SlugField(
        required=False, max_length=50, error_messages={"unique": "Another language model has this slug."}
    )
    # render_value stays off: entered keys are not sent back.
    api_key = forms.CharField(
        required=False,
        strip=True,
        max_length=4000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "spellcheck": "false"}),
    )
    drop_key = forms.BooleanField(required=False)
    tokenizer = forms.ChoiceField(required=False)

    class Meta:
        model = LanguageModel
        fields: ClassVar = [
            *("name", "slug", "api", "base_url", "api_version", "model", "context_tokens", "max_answer_tokens"),
            *("tokenizer", "temperature", "allows_system_prompt", "min_temperature", "max_temperature"),
            *("timeout_seconds", "silence_seconds", "max_retries"),
            *("prompt_price", "completion_price", "fallback", "is_default", "is_enabled"),
        ]

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, instance: LanguageModel, others: Sequence[LanguageModel]
    ) -> None:
        super().__init__(data, instance=instance)
        self.key_length = key_length(instance)
        fallback = self.fields["fallback"]
        if isinstance(fallback, forms.ModelChoiceField):
            fallback.queryset = LanguageModel.objects.filter(pk__in=[it.pk for it in others if it.pk != instance.pk])
            fallback.empty_label = "None: quote the passages"
        tokenizer = self.fields["tokenizer"]
        if isinstance(tokenizer, forms.ChoiceField):
            names = dict.fromkeys([*tokenizers(), *([instance.tokenizer] if instance.tokenizer else [])])
            tokenizer.choices = [("", "The embedding model's tokenizer"), *((name, name) for name in names)]
        for name, field in self.fields.items():
            field.disabled = instance.is_locked and name in LOCKED | {"api_key", "drop_key"}

    @property
    def key(self) -> str | None:
        """The entered key; empty to remove the stored one, None to leave it unchanged."""
        given: str = self.cleaned_data.get("api_key") or ""
        return given or ("" if self.cleaned_data.get("drop_key") or not self.instance.pk else None)

    def is_ready_for_list(self) -> bool:
        """Return whether the service's models can be listed: neither name nor model is needed for that."""
        for name in ("name", "slug", "model"):
            self.errors.pop(name, None)
        return not self.errors

    def offer(self, names: Sequence[str]) -> None:
        """Let the model be selected from these."""
        current: str = self["model"].value() or ""
        if names:
            choices = [(it, it) for it in dict.fromkeys((*((current,) if current else ()), *names))]
            self.fields["model"].widget = forms.Select(choices=choices)

    def _get_validation_exclusions(self) -> set[str]:
        """Skip the uniqueness of the default: saving moves it from the previous model."""
        excluded: set[str] = super()._get_validation_exclusions()
        return excluded | {"is_default"}

    def _post_clean(self) -> None:
        """Also check the model as a whole, with errors at their fields."""
        super()._post_clean()  # type: ignore[misc]  # Django's, and not in the stubs
        for name, message in problems_of(self.instance, self.key).items():
            field = name if name in self.fields else None
            if field == "slug" and "name" in self.errors:
                continue  # It is made of the name.
            if field is None or field not in self.errors:
                self.add_error(field, message)

    def service(self) -> list[BoundField]:
        """Return the fields of the service."""
        return [self[name] for name in ("api", "base_url", "model", "api_version")]


class RuleForm(ConsoleForm):
    """A routing rule for one user or one compartment."""

    _NO_MODEL: ClassVar = "none"

    compartment = forms.ModelChoiceField(
        Compartment.objects.listed(), required=False, empty_label="Select a compartment"
    )
    user = forms.CharField(
        required=False, max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"})
    )
    language_model = forms.ChoiceField()

    def __init__(self, data: Mapping[str, Any] | None = None, *, models: Sequence[LanguageModel]) -> None:
        super().__init__(data)
        self._models = {model.slug: model for model in models}
        choice = self.fields["language_model"]
        if isinstance(choice, forms.ChoiceField):
            choice.choices = [
                *((model.slug, model.name) for model in models),
                (self._NO_MODEL, "None: quote the passages"),
            ]

    @property
    def model(self) -> LanguageModel | None:
        """The selected model; None for quotes."""
        return self._models.get(self.cleaned_data["language_model"])

    @property
    def owner(self) -> User | Compartment:
        """The user or compartment of the rule."""
        owner: User | Compartment = self.cleaned_data["owner"]
        return owner

    def clean(self) -> dict[str, Any]:
        """Find the one user or compartment."""
        values = super().clean() or self.cleaned_data
        name = values.get("user", "").replace("\0", "")
        user = User.objects.filter(username=name).first() if name else None
        if name and user is None:
            self.add_error("user", "No user has this name.")
        elif (user is None) == (values.get("compartment") is None):
            self.add_error(None, "Select either one user or one compartment.")
        return {**values, "owner": user or values.get("compartment")}
