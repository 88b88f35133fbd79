"""Spans of a question: what a copied argument may be cut from. Pure."""

import re
from collections.abc import Iterable

MAX_TOKENS = 320  # words of a question that spans are made of
TOKEN = re.compile(r"[^\s,;:!?()\[\]{}\"“”«»]+")
HARD_BREAK = re.compile(r"[;:!?()\[\]{}\"“”«»\n]|\.(?=\s|$)|--|—")
ARROW = re.compile(r"[-=]+>|→|-")
EDGES = (
    "a about after again all also am an and any are as at be been before being but by can check could did do does "
    "document for from give had has have he her hers him his how i if in into is it its just log look me my near "
    "note now of on one or our out over please prescribe record save search she should show since so some start "
    "that the their them then there these they this those to today under until up us was we were what when "
    "where which while who why will with would write you your find add patient's pls plz thx thanks cheers ta got "
    "say i'm i've i'd i'll he's she's it's that's there's we're we've we'd they're they've you're you've don't doesn't "
    "isn't what's who's where's how's anywhere somewhere not"
)
EDGE_WORDS = frozenset(EDGES.split())


def phrases(
    text: str, max_words: int, *, across_commas: bool = False, edges: bool = False, owners: bool = False
) -> list[str]:
    """Spans of up to `max_words` words of a text, as written; none crosses the end of a clause.

    Args:
        text: to take them from; only its first 320 words are used.
        max_words: of a span.
        across_commas: whether a comma may stand inside.
        edges: whether a span may begin or end with an article, preposition or command.
        owners: whether a span keeps the possessive at its end: "Alzheimer's".
    """
    found: list[tuple[int, int, str]] = []
    for clause in _clauses(text, across_commas):
        for first in range(len(clause)):
            if not edges and _edge(clause[first]):
                continue
            for last in range(first, min(first + max_words, len(clause))):
                if edges or not _edge(clause[last]):
                    start, end = _start(clause[first]), _end(clause[last], owners)
                    if end > start:
                        found.append((-(last - first), start, text[start:end]))
    return [span for _length, _start, span in sorted(found)]  # the longest first: it names the thing in full


def _clauses(text: str, across_commas: bool) -> Iterable[list[re.Match]]:
    """Words between the breaks of a text."""
    clause: list[re.Match] = []
    for token in list(TOKEN.finditer(text))[:MAX_TOKENS]:
        between = text[clause[-1].end() : token.start()] if clause else ""
        ended = clause and clause[-1].group().endswith(".") and len(clause[-1].group()) > 3
        if clause and ARROW.fullmatch(clause[-1].group()):
            clause.pop()
            ended = True
        if clause and (ended or HARD_BREAK.search(between) or ("," in between and not across_commas)):
            yield clause
            clause = []
        clause.append(token)
    if clause:
        yield clause


def _edge(token: re.Match) -> bool:
    if token.group() == "A" and token.start():
        return False  # hepatitis A
    return token.group().casefold().replace("’", "'").strip(".'-") in EDGE_WORDS or not re.search(r"\w", token.group())


def _start(token: re.Match) -> int:
    """Without a quotation mark before it."""
    return token.start() + len(token.group()) - len(token.group().lstrip("'‘"))


def _end(token: re.Match, owners: bool) -> int:
    """Without the full stop at its end, and without the possessive unless `owners`."""
    word = token.group()
    ending = r"[.'’-]*$" if owners else r"(?:['’]s)?[.'’-]*$"
    return token.end() - (len(word) - len(re.sub(ending, "", word)))
