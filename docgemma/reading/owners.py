"""Say to which patient each entry of a message belongs, where several are named. Pure."""

from collections.abc import Sequence

from docgemma.reading.patients import PatientLink
from docgemma.reading.words import plain

JOINERS = frozenset(["and", "or", "plus", "both", "&", "+", "/", "n"])


def owners(message: str, entries: Sequence[int], people: Sequence[PatientLink]) -> list[list[str]]:
    """The ids of the patients of each entry.

    "paracetamol for Okafor, senna for Birch"; "Okafor: paracetamol. Birch: senna"; "Okafor and Birch need paracetamol".

    Args:
        entries: where each begins, in order of appearance.
        people: in order of appearance, each resolved.
    """
    found = []
    for at, start in enumerate(entries):
        stop = entries[at + 1] if at + 1 < len(entries) else len(message)
        before = [link for link in people if link.start <= start]
        behind = [link for link in people if link.start > start]
        near = behind and behind[0].start < stop
        said_for = near and "for" in plain(message[start : behind[0].start]).split()
        first = bool(entries) and entries[0] < people[0].start  # each drug stands before its patient
        link = behind[0] if behind and (said_for or not before or (first and near)) else before[-1]
        found.append([link.candidates[0].id])
    taken = {owner for ids in found for owner in ids}
    order = [link.candidates[0].id for link in people]
    return [sorted([*ids, *_joined(message, ids[0], people, taken)], key=order.index) for ids in found]


def _joined(message: str, owner: str, people: Sequence[PatientLink], taken: set[str]) -> list[str]:
    """Patients named in one breath with the owner who have no entry of their own: "for Okafor & Birch"."""
    names = [link.candidates[0].id for link in people]
    at, more = names.index(owner), []
    for step in (1, -1):
        here = at
        while 0 <= here + step < len(people) and names[here + step] not in taken:
            left, right = sorted((people[here], people[here + step]), key=lambda link: link.start)
            if set(plain(message[left.end : right.start]).split()) - JOINERS:
                break
            here += step
            more.append(names[here])
    return more
