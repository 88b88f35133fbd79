"""Tell whose each entry of a message is, where it names several patients."""

from collections.abc import Sequence
from itertools import pairwise

from docgemma.ehr.identifiers import LABELS
from docgemma.reading.patients import PatientLink
from docgemma.text.words import listed, plain

JOINERS = frozenset(["and", "or", "plus", "both", "&", "+", "/", "n"])
BEGINNING = frozenset(["and", "for"])


def owners(message: str, entries: Sequence[int], people: Sequence[PatientLink]) -> list[list[str]]:
    """The ids of the patients of each entry; of one that is told of a relative, or may be of several of them, none.

    "paracetamol for Okafor, senna for Birch"; "Okafor: paracetamol. Birch: senna"; "Okafor and Birch need paracetamol".

    Args:
        entries: where each begins, in order of appearance.
        people: in order of appearance, each resolved.
    """
    found, places = [], [*zip(entries, [*entries[1:], len(message)], strict=True)]
    for start, stop in places:
        before = [link for link in people if link.start <= start]
        behind = [link for link in people if link.start > start]
        near = bool(behind) and behind[0].start < stop
        first = entries[0] < people[0].start  # each drug stands before its patient
        opening = bool(before) and not first and stop < len(message)
        said_for = near and _said_for(message[start : behind[0].start], opening)
        link = behind[0] if behind and (said_for or not before or (first and near)) else before[-1]
        found.append(people.index(link))
    whole = [[people[at].candidates[0].id for at in _joined(message, owner, people, set(found))] for owner in found]
    if any(_crossed(message, one, link) for one, link in pairwise(people)):
        return [[] for _ in entries]
    related = [_is_relative(message, one, link) for one, link in pairwise(people)]
    return [_of_family(message, *place, people, related) for place in places] if any(related) else whole


def parts(message: str, entries: Sequence[int], people: Sequence[PatientLink]) -> list[tuple[int, int, list[str]]]:
    """Where the words of each patient's entries begin and end, with the ids of whose they are."""
    whose, found, start = owners(message, entries, people), list[tuple[int, int, list[str]]](), 0
    owning = {one for ids in whose for one in ids}
    alone = [(link.start, [one.id for one in link.candidates if one.id not in owning]) for link in people]
    begun = sorted([*zip(entries, whose, strict=True), *(item for item in alone if item[1] and all(whose))])
    for (one, mine), (after, other) in pairwise(begun):
        if mine != other:
            named = [link.start for link in people if one < link.start <= after and link.candidates[0].id in other]
            begins = _last_clause(message[one : named[0]]) if named else ""  # "; for Birch"
            cut = named[0] - len(begins) * ({*plain(begins).split()} <= BEGINNING) if named else after
            found.append((start, cut, mine))
            start = cut
    return [*found, (start, len(message), begun[-1][1])]


def _last_clause(text: str) -> str:
    """What stands behind the last mark of a text."""
    return text.translate(str.maketrans(";\n", ",,")).replace(". ", ",,").rpartition(",")[2]


def _said_for(between: str, opening: bool) -> bool:
    """Whether a name is of the entry before it, "senna for Birch"; `opening`: "; for Birch" may begin the next part."""
    words = plain(_last_clause(between)).split()
    begins = opening and (words == ["for"] or words[-2:] == ["and", "for"])
    return "for" in words and not begins


def sex_meant(message: str, start: int, ordered: bool = False) -> str:
    """The sex of the last pronoun in the sentence before an entry, "start her on"; `ordered`: behind an order alone."""
    words = plain(_sentence(message, start)).split()
    orders = listed("request_words", "ordering", "beginning")
    said = [
        word for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False)
        if after not in listed("request_words", "relatives") and (not ordered or before in orders)
    ]  # fmt: skip
    found = [sex for word in said for sex in ("male", "female") if word in listed("request_words", sex)]
    return found[-1] if found else ""


def _sentence(message: str, start: int, ahead: bool = False) -> str:
    """What stands before a place in its sentence, or behind it."""
    told = message.replace("\n", ". ").replace("; ", ". ").replace("? ", ". ")
    return told[start:].partition(". ")[0] if ahead else message[:start][len(told[:start].rpartition(". ")[0]) :]


def _crossed(message: str, one: PatientLink, link: PatientLink) -> bool:
    """Whether the id of one patient stands beside the name of another: "id def-456 John Smith", "J Smith (def-456)"."""
    between = plain(message[one.end : link.start].replace("#", " ")).split()
    bare = not between and "," not in message[one.end : link.start]
    return one.kind != link.kind and (bare or (bool(between) and {*between} <= {*LABELS}))


def _is_relative(message: str, one: PatientLink, link: PatientLink) -> bool:
    """Whether the second is named as a relative: "X, wife of Y", "X - her husband Y", "X's mother Y"."""
    between = message[one.end : link.start].rstrip()
    words = [] if between.endswith((".", ";", "?")) else plain(between).split()
    while words and words[-1] in listed("request_words", "linking", "stop"):
        words.pop()
    return bool(listed("request_words", "relatives") & {*words[-1:]})


def _of_family(
    message: str, start: int, stop: int, people: Sequence[PatientLink], related: Sequence[bool]
) -> list[str]:
    """Of patients one of whom is a relative: who is named behind "for", whom the pronoun fits, else who is no relative;
    nobody where two fit, or where the relative is whom the sentence speaks of."""
    ids = {link.candidates[0].id: link.candidates[0] for link in people}
    said = pairwise(plain(_sentence(message[start:stop], 0, ahead=True)).replace("'s", "").split())
    told = {word for before, word in said if before == "for"}
    if len(named := [one for one, who in ids.items() if told & {*plain(who.name).split()}]) == 1:
        return named
    sex, sentence = sex_meant(message, start), _sentence(message, start)
    inside = [at for at, link in enumerate(people) if start - len(sentence) <= link.start < start]
    between = plain(message[people[inside[-1]].end : start]).split() if inside else []
    orders = listed("request_words", "ordering", "beginning", "noting_plainly")
    if inside and inside[-1] and related[inside[-1] - 1] and not orders & {*between}:
        return []
    if sex:
        fitting = [one for one, who in ids.items() if who.sex in (sex, "")]
        return fitting if len(fitting) == 1 else []
    free = [one for one, kin in zip(ids, [False, *related], strict=True) if not kin]
    owned = any("'s" in message[link.end - 2 : link.end + 2].replace("’", "'") for link in people)  # "X's mother Y"
    return free if len(free) == 1 and not owned else []


def _joined(message: str, owner: int, people: Sequence[PatientLink], taken: set[int]) -> list[int]:
    """The owner and those named in one breath with them who have no entry of their own: "for Okafor & Birch"."""
    group = [owner]
    for step in (1, -1):
        here = owner
        while 0 <= here + step < len(people) and here + step not in taken:
            left, right = sorted((people[here], people[here + step]), key=lambda link: link.start)
            words = plain(message[left.end : right.start]).split()
            if not {word for word in words if not any(map(str.isdigit, word))} <= JOINERS:  # "Smith abc-123 and Birch"
                break
            here += step
            group.append(here)
    return sorted(group)
