"""Language models, routing rules, and the usage of language models."""

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from corecube.models import ApiKey, Compartment


class LanguageModel(models.Model):
    """A language model of an OpenAI-compatible service."""

    class Api(models.TextChoices):
        OPENAI = "openai", "OpenAI-compatible"
        AZURE = "azure", "Azure OpenAI"

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    api = models.CharField(max_length=10, choices=Api, default=Api.OPENAI)
    #: Not a URLField, which rejects hosts without a dot, such as container names.
    base_url = models.CharField(max_length=500, help_text="Up to and with /v1; for Azure the resource's address.")
    api_version = models.CharField(max_length=40, blank=True, help_text="Azure only.")
    model = models.CharField(max_length=200, help_text="What the service calls it; for Azure the deployment.")
    #: The API key of the service, encrypted (`corecube.secrets`); no form and no API shows it.
    sealed_key = models.TextField(blank=True, default="", editable=False)
    timeout_seconds = models.FloatField(default=60.0, validators=[MinValueValidator(1), MaxValueValidator(600)])
    #: Timeout before the first token, and between two tokens.
    silence_seconds = models.FloatField(default=30.0, validators=[MinValueValidator(0.1), MaxValueValidator(600)])
    max_retries = models.PositiveSmallIntegerField(default=2, validators=[MaxValueValidator(5)])
    context_tokens = models.PositiveIntegerField(default=8192, validators=[MinValueValidator(1024)])
    tokenizer = models.CharField(
        max_length=100,
        blank=True,
        help_text="Folder of the models here whose tokenizer.json counts its tokens; else the embedding model's.",
    )
    max_answer_tokens = models.PositiveIntegerField(default=1024, validators=[MinValueValidator(16)])
    temperature = models.FloatField(default=0.1, validators=[MinValueValidator(0), MaxValueValidator(2)])
    #: Limits of the requests of applications, which may set their own prompt and temperature.
    allows_system_prompt = models.BooleanField(default=True, db_default=True)
    min_temperature = models.FloatField(
        default=0.0, db_default=0.0, validators=[MinValueValidator(0), MaxValueValidator(2)]
    )
    max_temperature = models.FloatField(
        default=1.0, db_default=1.0, validators=[MinValueValidator(0), MaxValueValidator(2)]
    )
    #: Price per million tokens, in the installation's currency.
    prompt_price = models.DecimalField(max_digits=12, decimal_places=4, default=0)
    completion_price = models.DecimalField(max_digits=12, decimal_places=4, default=0)
    is_enabled = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False, help_text="Answers where no rule names another.")
    #: Synchronised with the environment, which sets its URL, its model and its key.
    is_locked = models.BooleanField(default=False, editable=False)
    fallback = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, help_text="Asked when this one cannot answer."
    )
    #: Time of the last answer, of the first failure since then, and of the last request or check (`llm.reachability`).
    answered_at = models.DateTimeField(null=True, editable=False)
    failing_since = models.DateTimeField(null=True, editable=False)
    checked_at = models.DateTimeField(null=True, editable=False)
    failure = models.TextField(blank=True, default="", db_default="", editable=False)  #: Why it fails, as a sentence.
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_model")
        ]

    def __str__(self) -> str:
        return self.name


class RoutingRule(models.Model):
    """The language model for a user, or the only one that may read a compartment's passages.

    A user's rule selects the model. A compartment's rule restricts: only that model gets its passages; without a model
    none does, and answers quote the passages.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="routing_rule"
    )
    compartment = models.OneToOneField(
        Compartment, null=True, blank=True, on_delete=models.CASCADE, related_name="routing_rule"
    )
    language_model = models.ForeignKey(
        LanguageModel, null=True, blank=True, on_delete=models.PROTECT, related_name="rules"
    )

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="rule_of_user_or_compartment",
                condition=Q(user__isnull=False, compartment__isnull=True)
                | Q(user__isnull=True, compartment__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or self.compartment}: {self.language_model or 'no language model'}"


class Usage(models.Model):
    """The usage of a language model by one answer."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="usage")
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL, related_name="usage")
    language_model = models.ForeignKey(LanguageModel, null=True, on_delete=models.SET_NULL, related_name="usage")
    model_name = models.CharField(max_length=120)  #: Its name at that time; stays if the model is deleted.
    record = models.ForeignKey("retrieval.SearchRecord", null=True, on_delete=models.SET_NULL)
    prompt_tokens = models.PositiveIntegerField()
    completion_tokens = models.PositiveIntegerField()
    is_estimated = models.BooleanField(default=False)  #: Counted here because the service reported no tokens.
    cost = models.DecimalField(max_digits=14, decimal_places=6, default=0)  #: At the model's prices of the time.
    seconds = models.FloatField()

    class Meta:
        ordering: ClassVar = ["-at"]

    def __str__(self) -> str:
        return f"{self.prompt_tokens} + {self.completion_tokens} tokens"
