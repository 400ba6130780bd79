"""Word lists to detect follow-up questions: words without content, and references to earlier text. Pure."""

from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUESTION: Final = _set("what which who whom whose when where why how since until")

#: Words that refer to something earlier.
POINTERS: Final = _set(
    "it its itself he him his himself she her hers herself they them their theirs themselves "
    "this that these those there former latter same other others one ones previous above"
)

#: Words that are no reference before a noun: "one employee", "other doors".
NUMERALS: Final = _set("one other others same")

#: Words that show that an "it" before them, or a "there" next to them, is only a dummy subject.
CLAUSE_MARKS: Final = _set("to that if")
BE: Final = _set("is are was were be been will")

#: Words before a verb: the word after them is no noun.
AUXILIARIES: Final = _set("do does did is are was were has have had can could may might must shall should will would")
BEFORE_VERBS: Final = AUXILIARIES - {"is", "are", "was", "were", "has", "have", "had"} | _set(
    "i we you he she it they who to not"
)

#: Words before a noun of the question: "does ammonia smell", "a pallet".
BEFORE_SUBJECTS: Final = _set("do does did a an")

#: Words before the noun that the question is about.
BEFORE_ASKED: Final = _set("what which whose many much")

#: Starts of a question that continues the previous one.
OPENERS: Final = tuple(
    f"{opener} "
    for opener in (
        *("and", "what about", "how about", "but", "or", "so", "then", "also", "same for"),
        *("what else", "who else", "where else", "why not", "why more", "why less"),
    )
)

#: Words without content.
FUNCTION: Final = (
    QUESTION
    | POINTERS
    | _set(
        "a an the of in on at by for from to with without about after before during into onto over under between "
        "through "
        "and or but so then also not no nor if than as too very only just still yet again already else even "
        "i me my mine we us our ours you your yours "
        "am is are was were be been being do does did doing done has have had having "
        "can could may might must shall should will would need "
        "many much more most less least few some any all both each every either neither another such "
        "long often quickly soon far high large big old exactly usually really now today currently "
        "get gets got take takes took make makes made give gives gave go goes went come comes came say says said "
        "tell explain please ok okay yes thanks thank hello there's what's who's it's that's i'm "
        "mean means happen happens happened thing things case"
    )
)
