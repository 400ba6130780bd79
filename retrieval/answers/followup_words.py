"""The words that make a follow-up question: what says nothing alone, and what points to what was said before. Pure."""

from typing import Final


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that ask.
QUESTION: Final = _set("what which who whom whose when where why how since until")

#: Words that point to something said before.
POINTERS: Final = _set(
    "it its itself he him his himself she her hers herself they them their theirs themselves "
    "this that these those there former latter same other others one ones previous above"
)

#: Words that point to nothing before a noun: "one employee", "other doors".
NUMERALS: Final = _set("one other others same")

#: Words that show that an "it" before them, or a "there" beside them, only fills the subject's place.
CLAUSE_MARKS: Final = _set("to that if")
BE: Final = _set("is are was were be been will")

#: Words before a verb, so that what follows them names nothing.
AUXILIARIES: Final = _set("do does did is are was were has have had can could may might must shall should will would")
BEFORE_VERBS: Final = AUXILIARIES - {"is", "are", "was", "were", "has", "have", "had"} | _set(
    "i we you he she it they who to not"
)

#: Words before something that a question names by itself: "does ammonia smell", "a pallet".
BEFORE_SUBJECTS: Final = _set("do does did a an")

#: Words before what is asked for.
BEFORE_ASKED: Final = _set("what which whose many much")

#: Beginnings of a question that goes on from the one before.
OPENERS: Final = tuple(
    f"{opener} "
    for opener in (
        "and",
        "what about",
        "how about",
        "but",
        "or",
        "so",
        "then",
        "also",
        "same for",
        "what else",
        "who else",
        "where else",
        "why not",
        "why more",
        "why less",
    )
)

#: Words that name nothing.
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
