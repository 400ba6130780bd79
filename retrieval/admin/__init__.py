"""What admins change: presets by versions, language models and the rules that choose among them."""
