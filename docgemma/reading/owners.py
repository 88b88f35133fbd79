"""Tell whose each entry of a message is, where it names several patients."""

from collections.abc import Sequence

from docgemma.reading.patients import PatientLink
from docgemma.text.words import plain

JOINERS = frozenset(["and", "or", "plus", "both", "&", "+", "/", "n"])


def owners(message: str, entries: Sequence[int], people: Sequence[PatientLink]) -> list[list[str]]:
    """The ids of the patients of each entry.

    "paracetamol for Okafor, senna for Birch"; "Okafor: paracetamol. Birch: senna"; "Okafor and Birch need paracetamol".

    Args:
        entries: where each begins, in order of appearance.
        people: in order of appearance, each resolved.
    """
    found = []
    for start, stop in zip(entries, [*entries[1:], len(message)], strict=True):
        before = [link for link in people if link.start <= start]
        behind = [link for link in people if link.start > start]
        near = bool(behind) and behind[0].start < stop
        said_for = near and "for" in plain(message[start : behind[0].start]).split()
        first = entries[0] < people[0].start  # each drug stands before its patient
        link = behind[0] if behind and (said_for or not before or (first and near)) else before[-1]
        found.append(people.index(link))
    return [[people[at].candidates[0].id for at in _joined(message, owner, people, set(found))] for owner in found]


def _joined(message: str, owner: int, people: Sequence[PatientLink], taken: set[int]) -> list[int]:
    """The owner and those named in one breath with them who have no entry of their own: "for Okafor & Birch"."""
    group = [owner]
    for step in (1, -1):
        here = owner
        while 0 <= here + step < len(people) and here + step not in taken:
            left, right = sorted((people[here], people[here + step]), key=lambda link: link.start)
            if set(plain(message[left.end : right.start]).split()) - JOINERS:
                break
            here += step
            group.append(here)
    return sorted(group)
