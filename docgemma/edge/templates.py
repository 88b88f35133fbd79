"""Text patterns: `[a|b]` picks one (nesting allowed), `{slot}` is filled. A filled slot's text is kept as gold."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from docgemma.edge.lexicon import Lexicon
from docgemma.paths import data_file

INNERMOST = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"\{(\w+)\}")
GLUED = re.compile(r"(?<=[\w,;:=>])(?=\{)|(?<= -)(?=\{)|(?<=\})(?=(?:with|and)\b)")
OPEN, CLOSE = "\x01", "\x02"  # mark the filled slots until noise has been added around them


@cache
def load(name: str) -> tuple[str, ...]:
    """The patterns of `data/edge/templates/<name>.txt`, one a line."""
    text = data_file("edge", "templates", f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line.strip() and not line.startswith("#"))


@dataclass(frozen=True)
class Filled:
    """A text made from a pattern, and what its slots were filled with."""

    text: str
    slots: dict[str, str]


def choose(pattern: str, words: Lexicon) -> str:
    """The pattern with every alternative decided and blanks tidied; slots still open."""
    while INNERMOST.search(pattern):
        pattern = INNERMOST.sub(lambda found: words.pick(found[1].split("|")), pattern)
    pattern = GLUED.sub(" ", pattern)
    return re.sub(r" {2,}", " ", pattern).replace(" ,", ",").strip()


def fill(pattern: str, words: Lexicon, value: Callable[[str], str], noise: bool = True) -> Filled:
    """Decide, fill and roughen one pattern. `value` gives a slot's text; the same slot is filled once."""
    slots: dict[str, str] = {}

    def put(found: re.Match) -> str:
        slots.setdefault(found[1], value(found[1]))
        return f"{OPEN}{slots[found[1]]}{CLOSE}"

    text = SLOT.sub(put, choose(pattern, words))
    text = roughen(text, words) if noise else text
    return Filled(text.replace(OPEN, "").replace(CLOSE, ""), slots)


def roughen(text: str, words: Lexicon) -> str:
    """Politeness, lost capitals and full stops, slips of the fingers; never inside a filled slot."""
    if words.chance(0.12):
        opener = words.pick(
            [
                "Please ",
                "please ",
                "Hi, ",
                "hey ",
                "Can you ",
                "Quick one: ",
                "ok ",
                "So, ",
                "Urgent: ",
                "pls ",
                "Hey doc, ",
                "and ",
                "Sorry, ",
                "Good morning, ",
                "one more thing: ",
                "Now ",
                "Next, ",
                "Doc, ",
                "Could you ",
                "quickly, ",
                "Also, ",
            ]
        )
        text = opener + (text[:1].lower() + text[1:] if not text.startswith(OPEN) else text)
    if words.chance(0.10):
        text = text.rstrip(".?! ") + words.pick(
            (
                " please",
                " pls",
                ", thanks",
                " thx",
                " asap",
                "!",
                " please.",
                "??",
                " for me",
                " now",
                ", cheers",
                " - urgent",
            )
        )
    parts = re.split(f"({OPEN}[^{CLOSE}]*{CLOSE})", text)
    lower, slip = words.chance(0.3), words.chance(0.12)
    for at in range(0, len(parts), 2):
        if lower:
            parts[at] = parts[at].lower()
        if slip and len(parts[at]) > 8 and words.chance(0.6):
            parts[at] = words.typo(parts[at])
    text = "".join(parts)
    if words.chance(0.15):
        text = text.rstrip(".?!")
    elif words.chance(0.08) and text[-1].isalnum():
        text += "."
    return text[:1].upper() + text[1:] if words.chance(0.15) and not text.startswith(OPEN) else text
