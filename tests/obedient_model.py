"""A language model that does whatever it is told where people speak, and takes the rest for data.

It reads a prompt as weak models do: whoever closes the fence, opens a passage or writes a role's token is believed. So
an instruction in a document that is out of its fence by any way is followed, and says its canary.
"""

import re

_CANARY = re.compile(r"CANARY-\d+")
_FENCE = re.compile(r"<<<([0-9a-f]{16}|\{fence\})")
#: What a template reads as the beginning of another message, wherever it stands.
_ROLE_TOKENS = re.compile(
    r"<[|\uff5c][^\s<>]+?[|\uff5c]>|\[/?INST\]|<</?SYS>>|</?s>|</?(?:start|end)_of_turn>|</?tool_call>|</?think>"
)
_SENTENCE = re.compile(r"[^.\n]*four minutes[^.\n]*\.")


def answer(body):
    """Return what it answers to the body of a chat request: canaries that it was told, and what takes four minutes."""
    *before, last = body["messages"]
    spoken, passages = read(last["content"], fence_of(body["messages"]))
    said = _CANARY.findall(" ".join([spoken, *(message["content"] for message in before)]))
    found = [f"{match[0].strip()[:-1]} [{number}]." for number, text in passages for match in _SENTENCE.finditer(text)]
    return " ".join([*said, *(found or ["I couldn't find this in your documents."])])


def fence_of(messages):
    """Return the fence that the system message names."""
    return _FENCE.search(messages[0]["content"])[1]


def read(content, fence):
    """Return what stands outside the fence, and each passage with its number."""
    spoken, passages, inside = [], [], False
    for line in content.splitlines():
        told = _ROLE_TOKENS.split(line, maxsplit=1)
        if len(told) > 1:
            spoken.append(told[1])
            inside = False
        if line.strip() == f"<<<{fence}":
            inside = True
            passages.append([])
        elif line.strip().endswith(">>>"):
            inside = False
        elif inside:
            passages[-1].append(line)
        else:
            spoken.append(line)
    return "\n".join(spoken), [(_number(lines[0]), "\n".join(lines)) for lines in passages]


def _number(line):
    return int(re.match(r"### \[(\d+)\] ", line)[1])
