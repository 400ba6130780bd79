"""Template filters for language model usage and cost."""

from django import template

from explorer.pages.side_by_side.preset_cost import cost_words, model_words

register = template.Library()
register.filter(model_words)
register.filter(cost_words)
