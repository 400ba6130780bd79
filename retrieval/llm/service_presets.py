"""The known services of language models, with the settings that each needs."""

from dataclasses import dataclass
from typing import Any, Final

from retrieval.llm.service import Api


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePreset:
    """A known service."""

    slug: str
    name: str
    base_url: str
    api: Api = Api.OPENAI
    context_tokens: int = 8192
    max_answer_tokens: int = 1024
    note: str = ""  #: What to know before it is added.

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a language model of this service."""
        return {
            "api": self.api.value,
            "base_url": self.base_url,
            "context_tokens": self.context_tokens,
            "max_answer_tokens": self.max_answer_tokens,
        }


_CLOUD_CONTEXT: Final = 32_768
_CLOUD_ANSWER: Final = 4096

PRESETS: Final = {
    preset.slug: preset
    for preset in (
        ServicePreset(
            slug="openai",
            name="OpenAI",
            base_url="https://api.openai.com/v1",
            note="Needs an API key. Passages and questions are sent to OpenAI.",
            context_tokens=_CLOUD_CONTEXT,
            max_answer_tokens=_CLOUD_ANSWER,
        ),
        ServicePreset(
            slug="azure",
            name="Azure OpenAI",
            api=Api.AZURE,
            base_url="https://RESOURCE.openai.azure.com",
            note="Replace RESOURCE with the name of your resource, and enter the deployment as the model.",
            context_tokens=_CLOUD_CONTEXT,
            max_answer_tokens=_CLOUD_ANSWER,
        ),
        ServicePreset(
            slug="anthropic",
            name="Anthropic",
            base_url="https://api.anthropic.com/v1",
            note="Uses Anthropic's OpenAI-compatible API, which ignores seed and response_format. Needs an API key. "
            "Passages and questions are sent to Anthropic.",
            context_tokens=_CLOUD_CONTEXT,
            max_answer_tokens=_CLOUD_ANSWER,
        ),
        ServicePreset(
            slug="mistral",
            name="Mistral",
            base_url="https://api.mistral.ai/v1",
            note="Needs an API key. Passages and questions are sent to Mistral.",
            context_tokens=_CLOUD_CONTEXT,
            max_answer_tokens=_CLOUD_ANSWER,
        ),
        ServicePreset(
            slug="ollama",
            name="Ollama",
            base_url="http://127.0.0.1:11434/v1",
            context_tokens=4096,
            note="Ollama truncates longer prompts silently: the context window here must not be larger than "
            "OLLAMA_CONTEXT_LENGTH on its server.",
        ),
        ServicePreset(
            slug="vllm",
            name="vLLM",
            base_url="http://127.0.0.1:8001/v1",
            note="CoreCube and vLLM both use port 8000. Start vLLM with --port 8001.",
        ),
        ServicePreset(
            slug="llamacpp",
            name="llama.cpp",
            base_url="http://127.0.0.1:8080/v1",
            context_tokens=4096,
            note="The context window here must not be larger than --ctx-size of llama-server.",
        ),
    )
}
