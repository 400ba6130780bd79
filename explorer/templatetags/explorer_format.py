"""What templates need beyond Django's own tags: figures with separators, and addresses of passages."""

from urllib.parse import urlencode

from django import template
from django.urls import reverse

from retrieval.types import ChunkId

register = template.Library()


@register.filter
def thousands(number: int) -> str:
    """Return a whole number with separators: 1,204."""
    return f"{number:,}"


@register.simple_tag
def document_url(chunk_id: ChunkId, run_as: str) -> str:
    """Return the address of a chunk in its document, read as `run_as` where that is someone else."""
    query = f"?{urlencode({'as': run_as})}" if run_as else ""
    path = reverse("explorer:document", args=[chunk_id.document_id])
    return f"{path}{query}#chunk-{chunk_id.ordinal}"
