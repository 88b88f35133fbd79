"""What a sentence affirms: words that are denied, only considered, planned, or a relative's are no evidence. Pure.

The triggers and how far they reach are data: `data/rcm/negation.yaml`, after NegEx and ConText.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from docgemma.rcm.sentences import Sentence, Word, lists, words_of

Status = Literal["affirmed", "negated", "hypothetical", "planned", "family"]
KINDS: tuple[Status, ...] = ("family", "negated", "hypothetical", "planned")  # which wins
GAP = 4  # words that a "*" stands for; words between a negation and the outcome that it denies
ANSWERS = ":?-–—="


class Reach(NamedTuple):
    """A trigger at words `start` to `end`, and the words that it reaches."""

    kind: Status
    start: int
    end: int
    first: int
    last: int


def hits(terms: Iterable[Any], words: Sequence[Word]) -> list[tuple[int, int]]:
    """Where terms stand as whole words in order, a plural "s" there or not; "*" stands for up to four words."""
    heads, found = _heads(tuple(map(str, terms))), set[tuple[int, int]]()
    for at, word in enumerate(words):
        for form in (word.text, f"{word.text}s", word.text.removesuffix("s")):
            for parts in heads.get(form, ()):
                if _same(parts[0], word.text) and (end := _match(parts, words, at)):
                    found.add((at, end))
    return sorted(found)


def status(
    words: Sequence[Word], start: int, end: int, section: str = "", beside: Iterable[tuple[int, int]] = ()
) -> Status:
    """How words `start` to `end` of a sentence stand there. A trigger within them does not count.

    Args:
        section: title of its section; one headed "Family History" or "Plan" tells by itself.
        beside: other words that are looked for; a trigger within those does not count either.
    """
    own = [(start, end), *beside]
    reaches = [reach for reach in _reaches(tuple(words)) if _reached(reach, start, end, own)]
    denied = [reach for reach in reaches if reach.kind == "negated"]
    kinds: set[Status] = {one.kind for one in reaches if one.kind != "family"}
    if any(not any(two.first <= one.start < two.last for two in denied) for one in reaches if one.kind == "family"):
        kinds.add("family")  # "no family history of it" is a denial
    if end < len(words) and "?" in words[end].mark and words[end].text not in ("yes", "y"):  # "Allergies: ibuprofen?"
        kinds.add("hypothetical")
    title, data = _title(section), lists("negation")
    if title in data["family_sections"]:
        kinds.add("family")
    if title in data["plan_sections"] and not any(word.text in data["done"] for word in words):
        kinds.add("planned")
    return next((kind for kind in KINDS if kind in kinds), "affirmed")


def says(
    sentence: Sentence,
    terms: Iterable[Any],
    kinds: Sequence[Status] = ("affirmed",),
    beside: Sequence[tuple[int, int]] = (),
) -> bool:
    """Whether one of the terms stands in a sentence in one of these ways."""
    found = hits(terms, sentence.words)
    return any(status(sentence.words, *spot, sentence.section, beside) in kinds for spot in found)


def in_plan(sentence: Sentence) -> bool:
    """Whether its section tells what is planned."""
    return _title(sentence.section) in lists("negation")["plan_sections"]


def _title(section: str) -> str:
    return " ".join(word.text for word in words_of(section))


def denied_outcomes(words: Sequence[Word]) -> list[tuple[int, int]]:
    """Where "no lasting improvement" and the like stand: what was done did not help, but it was done."""
    return [(at, end) for at in range(len(words)) if (end := _outcome(words, at))]


def _reached(reach: Reach, start: int, end: int, own: Sequence[tuple[int, int]]) -> bool:
    if reach.first == reach.start:  # denies itself: "no relief" as a whole stands
        return start < reach.last and reach.first < end and not any(one <= reach.start < two for one, two in own)
    within = any(one < reach.end and reach.start < two for one, two in own)
    return not within and start < reach.last and reach.first < end


@lru_cache(maxsize=4096)
def _reaches(words: tuple[Word, ...]) -> tuple[Reach, ...]:
    data, found, at, used = lists("negation"), list[Reach](), 0, list[tuple[int, int, set[str]]]()
    while at < len(words):
        size, roles = _longest(words, at)
        if outcome := _outcome(words, at):
            found.append(Reach("negated", at, outcome, at, outcome))
            size, roles = outcome - at, set()
        size = 1 if roles == {"ends"} else size  # "she has" ends a reach, "has yet to" begins one
        used.append((at, at + size, roles))
        at += size
    stops = [one for one, _, roles in used if "ends" in roles and not roles - {"ends"}]
    stops += [at for at, word in enumerate(words) if ";" in word.mark]
    stops += [at for at, word in enumerate(words) if "," in word.mark and word.text in data["ends_comma"]]
    same = {one for one, _ in hits(data["same_subject"], words)}
    for start, end, roles in used:
        kept = [stop for stop in stops if stop not in same or not any(role.startswith("family") for role in roles)]
        ahead = min((stop for stop in kept if stop >= end), default=len(words))
        behind = _clause(words, max((stop for stop in stops if stop < start), default=0), start)
        closed = end == ahead or bool(set(words[end].mark) & set(".,:)"))
        closed = closed or words[end].text in data["trails"] or words[end].text.isdigit()
        mark, opened = set(words[start].mark), _triggers().get(words[start].text, ())
        opens, alone = start == 0 or bool(mark & set(",:;.-•")), start > 0 and closed and bool(mark & set(ANSWERS))
        told = end < len(words) and words[end].text in data["family_unless_next"]
        for kind in KINDS:
            mine = {role.removeprefix(f"{kind} ") for role in roles if role.startswith(kind)}
            back = "behind" in mine and (closed or kind == "planned" or "before" not in mine)
            ahead_of = "before" in mine or ("first" in mine and opens)
            if "behind" in mine and not closed:  # "never tried PT" denies as "never" does
                ahead_of = ahead_of or f"{kind} before" in opened
            for reaches, first, last in (
                (ahead_of and not (kind == "family" and told), end, ahead),
                ("whole" in mine, end, len(words)),
                ("next" in mine, end, end + 1),
                (back or ("answers" in mine and alone), behind, start),
            ):
                if reaches:
                    found.append(Reach(kind, start, end, first, last))
    return tuple(found)


def _clause(words: Sequence[Word], start: int, end: int) -> int:
    """Where the clause before a trigger begins: behind the last comma, a list ("A, B and C were not tried") apart."""
    commas = [at for at in range(start + 1, end) if "," in words[at].mark]
    listed = commas and {"and", "or", "nor"} & {word.text for word in words[commas[-1] : end]}
    return commas[-1] if commas and not listed else start


def _outcome(words: Sequence[Word], at: int) -> int:
    """The end of "no lasting improvement" and the like, if it begins there; else 0."""
    data = lists("negation")["denied_outcome"]
    if words[at].text not in data["negators"]:
        return 0
    for place in range(at + 1, min(at + GAP + 2, len(words))):
        if set(words[place].mark) & set(",;:."):
            return 0
        if words[place].text in data["outcomes"]:
            return place + 1
    return 0


def _longest(words: Sequence[Word], at: int) -> tuple[int, set[str]]:
    """How many words the longest trigger at a place has, and what it is; (1, nothing) where there is none."""
    table = _triggers()
    for size in range(min(6, len(words) - at), 0, -1):
        phrase = " ".join(word.text for word in words[at : at + size])
        named = at or (len(words) > 1 and (words[1].capital or words[1].text[:1].isdigit()))
        capital = phrase in lists("negation")["small"] and words[at].capital and named
        if phrase in table and not capital and not any("," in word.mark for word in words[at + 1 : at + size]):
            return size, table[phrase]
    return 1, set()


@lru_cache(maxsize=1)
def _triggers() -> dict[str, set[str]]:
    data, table = lists("negation"), dict[str, set[str]]()
    named = {f"{kind} {where}": terms for kind in KINDS for where, terms in data[kind].items()}
    for role, terms in {**named, "ends": data["ends"], "none": data["none"]}.items():
        for term in terms:
            table.setdefault(" ".join(word.text for word in words_of(str(term))), set()).add(role)
    return table


@lru_cache(maxsize=1024)
def _heads(terms: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    """The words of each term by its first word."""
    heads: dict[str, list[tuple[str, ...]]] = {}
    for parts in filter(None, map(_parts, terms)):
        heads.setdefault(parts[0], []).append(parts)
    return heads


@lru_cache(maxsize=8192)
def _parts(term: str) -> tuple[str, ...]:
    return tuple(
        word.text for piece in term.replace("*", " * ").split() for word in (words_of(piece) or [Word("*", 0, 0)])
    )


def _same(one: str, other: str) -> bool:
    return one == other or (len(one) > 2 and (f"{one}s" == other or f"{other}s" == one))


def _match(parts: Sequence[str], words: Sequence[Word], at: int) -> int:
    """Where the parts that begin at a word end; 0 if they do not all follow."""
    place = at
    for number, part in enumerate(parts):
        if part == "*":
            continue
        reach = GAP + 1 if number and parts[number - 1] == "*" else 1
        for one in range(place, min(place + reach, len(words))):
            if number and set(words[one].mark) & set(",;"):
                return 0
            if _same(part, words[one].text):
                place = one + 1
                break
        else:
            return 0
    return place
