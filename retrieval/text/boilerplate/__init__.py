"""Words and patterns of boilerplate in the most common languages of web pages: data, free of Django."""

import re
from importlib.resources import files
from typing import Final


def _entries(name: str) -> frozenset[str]:
    text = (files("retrieval.text.boilerplate") / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


#: Usual names of menu entries. Several of them in a row make a menu, one does not.
MENU_WORDS: Final = _entries("menu_words")
FRAME_LINES: Final = _entries("frame_lines")  #: Complete lines that only occur in a page's frame.
#: Words of page navigation in manuals, several on one line: "Prev Up Home Next".
PAGER_WORDS: Final = _entries("pager_words")
TRAIL_STARTS: Final = frozenset({"home", "homepage", "startseite", "accueil", "inicio"})

#: The end of a line in a printed table of contents: "Accounting ........ 12", "1.2 Scope . . . . . 7".
CONTENTS_END: Final = re.compile(
    r"(?:(?:(?<=\w)|(?<=\w.)|(?<=\w..)|(?<=\w...))"
    r"(?:(?<!\.)\.{4,}+|(?<!\s\.)(?:\s\.){4,}+|(?<!\u2026)\u2026{2,}+|(?<!_)_{6,}+)|(?<!_)_{7,}+)"
    r"\s*+(?:[A-Z]-)?(?:\d{1,4}|[ivxlc]{1,7})$"
)
MAX_CONTENTS_CHARACTERS: Final = 200

#: A line with only a page number, and its maximum length.
PAGE_LINE: Final = re.compile(
    r"(?<![-\u2013\u2014\s])[-\u2013\u2014\s]*+(?:page|seite|página|pagina|p\.)\s*\d{1,4}(?:\s*(?:/|of|von|sur|de|di|van)\s*\d{1,4})?"
    r"[-\u2013\u2014\s]*|[-\u2013\u2014]\s*\d{1,4}\s*[-\u2013\u2014]",
    re.IGNORECASE,
)
MAX_PAGE_CHARACTERS: Final = 40

MAX_COPYRIGHT_WORDS: Final = 25  #: Maximum words of a copyright line; a longer one is prose about copyright.
COPYRIGHT: Final = re.compile(
    r"^(?>\W*?(?:copyright\b|©|\(c\)\s*(?:copyright\b|\d{4}))).*?(?:\b(?:19|20)\d\d\b|\breserved\b)"
    r"|©\s*(?:19|20)\d\d|(?:19|20)\d\d\s*©",
    re.IGNORECASE,
)
RIGHTS_RESERVED: Final = re.compile(
    r"\ball rights? reserved\b|\balle rechte vorbehalten\b|\btous droits réservés\b"
    r"|\b(?:todos los derechos reservados|reservados todos los derechos)\b|\btutti i diritti (?:sono )?riservati\b"
    r"|\balle rechten voorbehouden\b|\btodos os direitos reservados\b",
    re.IGNORECASE,
)
MADE_WITH: Final = re.compile(
    r"(?<!\W)\W*+(?:proudly powered by\b|(?:powered by|(?:built|created|made|generated) (?:with|using|by)|erstellt mit|"
    r"propulsé par|con la tecnología de)\s+(?:wordpress|drupal|joomla|typo3|sphinx|mkdocs|docusaurus|jekyll|hugo|"
    r"doxygen|javadoc|gitbook|hexo|ghost|squarespace|wix|shopify|confluence|mediawiki|blogger|read the docs)\b)",
    re.IGNORECASE,
)
MAX_MADE_WITH_CHARACTERS: Final = 80

#: A cookie banner states that cookies are used, and requests consent. A page about cookies does only the first.
COOKIES_USED: Final = re.compile(
    r"\b(?:use|uses|using) (?:\w+ ){0,3}cookies\b|\bcookies help us\b"
    r"|\b(?:verwendet|verwenden|nutzt|nutzen|setzt|setzen) (?:\w+ ){0,2}cookies\b"
    r"|\b(?:utilise|utilisons|utilisent) (?:\w+ ){0,2}cookies\b"
    r"|\b(?:utiliza|utilizamos|usa|usamos|utilizza|utilizziamo|gebruikt|gebruiken) (?:\w+ ){0,2}cookies\b",
    re.IGNORECASE,
)
COOKIES_ASKED: Final = re.compile(
    r"\bby (?:continuing|clicking|using|browsing|accepting)\b|\byou (?:accept|agree|consent)\b|\baccept all\b"
    r"|\bwenn sie (?:weiter|fortfahren)|\bdurch die (?:weitere )?nutzung\b|\bstimmen sie\b|\bmit klick auf\b"
    r"|\bindem sie\b|\ben (?:poursuivant|continuant|cliquant|utilisant)\b|\bvous acceptez\b"
    r"|\bal (?:continuar|navegar|hacer clic|utilizar)\b|\bsi (?:continúa|continua|sigue)\b"
    r"|\b(?:acepta|aceptas|accetti|accetta)\b|\bgaat u akkoord\b",
    re.IGNORECASE,
)

MIN_DISCLAIMER_CHARACTERS: Final = 60
#: Every match of MAIL_SELF contains one of these; searching for them first is many times faster.
MAIL_HINTS: Final = (
    "mail", "message", "communication", "transmission", "nachricht", "courriel", "courrier", "mensaje", "correo",
)  # fmt: skip
#: Phrases for the e-mail in such a disclaimer, and for its recipients.
MAIL_SELF: Final = re.compile(
    r"\bth(?:is|e) (?:information (?:contained )?in this )?(?:e-?mail|message|communication|transmission)\b"
    r"|\bdiese (?:e-?mail|nachricht)\b|\bce (?:message|courriel|courrier électronique|mail|e-?mail)\b"
    r"|\beste (?:mensaje|correo)\b",
    re.IGNORECASE,
)
MAIL_DISCLAIMED: Final = re.compile(
    r"\bintended (?:solely|only|exclusively)\b|\bnot the (?:intended|named) (?:recipient|addressee)\b"
    r"|\breceived (?:this|it) (?:\S+ )?(?:in error|by mistake)\b"
    r"|\bnicht der (?:richtige|beabsichtigte|vorgesehene) (?:adressat|empfänger)\b|\birrtümlich erhalten\b"
    r"|\b(?:à l'intention exclusive|exclusivement destiné|destinés? exclusivement)\b"
    r"|\breçu (?:\S+ ){0,3}par erreur\b|\bdirigid[oa] exclusivamente\b|\buso exclusivo\b"
    r"|\brecibido (?:\S+ ){0,3}por error\b",
    re.IGNORECASE,
)
