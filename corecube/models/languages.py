"""The languages that documents can be read in."""

from typing import Final

#: PostgreSQL text search configurations that come with every server from release 14 on, with their names.
LANGUAGE_CHOICES: Final = (
    ("", "The installation's"),
    ("simple", "Any (words as they are)"),
    *(
        (language, language.capitalize())
        for language in (
            "arabic",
            "armenian",
            "basque",
            "catalan",
            "danish",
            "dutch",
            "english",
            "finnish",
            "french",
            "german",
            "greek",
            "hindi",
            "hungarian",
            "indonesian",
            "irish",
            "italian",
            "lithuanian",
            "nepali",
            "norwegian",
            "portuguese",
            "romanian",
            "russian",
            "serbian",
            "spanish",
            "swedish",
            "tamil",
            "turkish",
            "yiddish",
        )
    ),
)
