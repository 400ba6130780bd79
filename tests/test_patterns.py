"""Every regular expression of the code takes a time in proportion to the length of what it reads."""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import re._constants as sre
import re._parser as parser
from collections import deque
from pathlib import Path

from tests.growth import BEGINNINGS, ENDS, MIXTURES, SIGNS, Text, faults
from tests.profiles import turn

ROOT = Path(__file__).parent.parent
APPS = ("corecube", "retrieval", "explorer")
_CALLS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"})
_AT_A_PLACE = frozenset({"match", "fullmatch"})
#: Signs and words of a pattern that hostile texts are made of.
_MAX_OWN = 24
_MAX_BESIDE = 6


def modules():
    for app in APPS:
        package = importlib.import_module(app)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{app}."):
            if ".migrations" not in found.name:
                yield importlib.import_module(found.name)


def is_ours(name):
    return (name or "").partition(".")[0] in APPS


def members(value):
    """Yield what a value of ours holds."""
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from value
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif inspect.isfunction(value) and is_ours(value.__module__):
        yield from (value.__defaults__, value.__kwdefaults__, getattr(value, "__wrapped__", None))
        yield inspect.getclosurevars(value).nonlocals
    elif isinstance(value, (staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, type) and is_ours(value.__module__):
        yield from vars(value).values()
    elif is_ours(type(value).__module__) and not isinstance(value, type):
        yield getattr(value, "__dict__", None)
        slots = (vars(kind).get("__slots__", ()) for kind in type(value).__mro__)
        yield from (getattr(value, slot, None) for names in slots for slot in names if isinstance(names, tuple))


def patterns_in(value, seen, depth=0):
    if isinstance(value, re.Pattern):
        yield value
    elif id(value) not in seen and depth < 8:
        seen[id(value)] = value
        for member in members(value):
            yield from patterns_in(member, seen, depth + 1)


@functools.cache
def patterns():
    """Return every pattern that a module holds: its name, the pattern, and by which calls it is applied."""
    seen, found = {}, {}
    for module in modules():
        calls = calls_in(module)
        for name, value in vars(module).items():
            for pattern in () if name.startswith("__") else patterns_in(value, seen):
                applied = calls.get(name, set()) if isinstance(value, re.Pattern) and name.startswith("_") else set()
                key = (pattern.pattern, pattern.flags)
                known = found.setdefault(key, (f"{module.__name__}.{name}", pattern, set()))
                known[2].update(applied or _CALLS)
    for module in modules():
        for call in inline_calls(module):
            pattern = re.compile(ast.literal_eval(call.args[0]), flags_of(call))
            key = (pattern.pattern, pattern.flags)
            found.setdefault(key, (f"{module.__name__}:{call.lineno}", pattern, set(_CALLS)))
    return list(found.values())


@functools.cache
def tree_of(module):
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def calls_in(module):
    """Return by which calls each name is applied; all of them for one that is handed on."""
    found, applied = {}, set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in _CALLS:
                found.setdefault(node.value.id, set()).add(node.attr)
            if node.attr in {*_CALLS, "pattern"}:
                applied.add(node.value)
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in applied:
            found.setdefault(node.id, set()).update(_CALLS)
    return found


def inline_calls(module, *, literal=True):
    """Yield the calls of `re` inside functions that write a pattern out, or that make one of something else."""
    functions = (node for node in ast.walk(tree_of(module)) if isinstance(node, (ast.FunctionDef, ast.Lambda)))
    for call in {node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)}:
        is_re = (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "re"
        )
        if is_re and call.func.attr in {*_CALLS, "compile"} and isinstance(call.args[0], ast.Constant) == literal:
            yield call


def flags_of(call):
    named = next((ast.unparse(it.value) for it in call.keywords if it.arg == "flags"), "")
    named = named or (ast.unparse(call.args[-1]) if len(call.args) > 1 and "re." in ast.unparse(call.args[-1]) else "0")
    return eval(named, {"re": re})


def ways(pattern, calls):
    """Return what is done with a text: every match is looked for, or one at its beginning."""
    found = [lambda text: deque(pattern.finditer(text), maxlen=0)] if calls - _AT_A_PLACE else []
    return [*found, *(getattr(pattern, name) for name in sorted(calls & _AT_A_PLACE))]


def written_in(tree):
    """Yield the signs and words that a pattern spells out."""
    run = ""
    for code, value in tree:
        if code is sre.LITERAL:
            run += chr(value)
            continue
        yield run
        run = ""
        if code is sre.NOT_LITERAL:
            yield chr(value)
        elif code is sre.IN:
            yield from (chr(it) for kind, it in value if kind is sre.LITERAL)
            yield from (chr(it[0]) for kind, it in value if kind is sre.RANGE)
        for part in value if isinstance(value, tuple) else (value,):
            for branch in part if isinstance(part, list) else (part,):
                if isinstance(branch, parser.SubPattern):
                    yield from written_in(branch)
    yield run


def own_words(pattern):
    found = dict.fromkeys(written_in(parser.parse(pattern.pattern, pattern.flags & ~re.LOCALE)))
    signs = [it for it in found if len(it) == 1]
    return [*signs[:_MAX_OWN], *(it for it in found if len(it) > 1)][: 2 * _MAX_OWN]


def texts_for(pattern):
    """Yield hostile texts: runs and mixtures that hold for any pattern, and those of what this one spells out."""
    own = own_words(pattern)
    units = dict.fromkeys([*SIGNS, *MIXTURES, *own, *(it + sign for it in own for sign in " a1\n")])
    yield from (Text(unit) for unit in units)
    signs = [it for it in own if len(it) == 1][:_MAX_BESIDE]
    beside = dict.fromkeys([*own[:_MAX_BESIDE], *(it for it in own if len(it) > 1)][: 2 * _MAX_BESIDE])
    for unit in dict.fromkeys([*signs, *"a1A .-_\n", "a ", "a."]):
        yield from (Text(unit, beginning, "!") for beginning in dict.fromkeys([*BEGINNINGS, *beside]))
        yield from (Text(unit, "", end) for end in dict.fromkeys([*ENDS, *beside]))
    yield from (Text(one + other) for one in [*signs, "a", " "] for other in [*signs, "1", "\n"])


def as_read(pattern, work):
    """Return what takes texts where a pattern reads bytes."""
    return (lambda text: work(text.encode())) if isinstance(pattern.pattern, bytes) else work


def test_every_pattern_is_linear_on_hostile_texts():
    found = {}
    for number, (name, pattern, calls) in enumerate(patterns()):
        for work in ways(pattern, calls):
            if told := faults(as_read(pattern, work), turn(texts_for(pattern), number, of=16), limit=2):
                found[name] = told
    assert not found


def test_patterns_that_are_handed_on_or_kept_in_containers_are_found():
    names = {name for name, _, _ in patterns()}
    assert {"retrieval.presets.helix.router.question._READERS", "retrieval.text.language._SCRIPTS"} <= names
    assert len(names) > 150


def test_no_function_makes_a_pattern_of_anything_but_what_is_tested_here():
    made = {module.__name__ for module in modules() for _ in inline_calls(module, literal=False)}
    assert made == {
        # Words of the code's own, found above in what they are assigned to.
        "retrieval.presets.helix.stages.signals",
        "retrieval.presets.helix.router.question",
        # Escaped phrases of a data file; what reads them is tested in tests/test_text_growth.py.
        "retrieval.ranking.quotes.asked",
        "retrieval.ranking.quotes.statements",
        # Escaped words of a request or a document: below, and in tests/test_text_growth.py.
        "explorer.components.snippets",
        "retrieval.text.markers",
        "corecube.connectors.confluence.connector",
    }
