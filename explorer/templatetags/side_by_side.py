"""What the page of all presets needs: the words for a language model's use and its cost."""

from django import template

from explorer.pages.side_by_side.preset_cost import cost_words, model_words

register = template.Library()
register.filter(model_words)
register.filter(cost_words)
