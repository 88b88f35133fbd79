"""Several orders in one request: which dose and which frequency belong to which drug. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from docgemma.rules.details import doses, frequencies

# what may stand between two orders of one list: "amoxicillin 1 g bd for 7 days, and clarithromycin 500 mg"
BETWEEN = re.compile(
    r"^(?:\s*(?:PO|IV|IM|SC|SL|PR|orally|by mouth)\b)?(?:\s*for\s+(?:\d+|\w+)\s+(?:days?|weeks?|months?))?[\s,;:.&+/-]*"
    r"(?:(?:and|plus|then|also|as well as|along with|together with)\b[\s,]*)*"
    r"(?:(?:please|also|start|prescribe|order|give|add)\b\s*)*(?:PO|IV|IM|SC|SL|PR)?\s*$",
    re.IGNORECASE,
)
# what leads to the first: "start …", "triple therapy as follows: …", but not "he takes …", "stop …"
LEADS = re.compile(
    r"\b(?:prescribe|start|order|give|commence|initiate|begin|add|put|rx|needs?|want|like|therapy|follows|scripts?)\b"
    r"(?:(?!\b(?:stop|stopped|hold|held|off|instead|from|takes?|taking|takes|currently|allergic|who|already|is on)\b).)"
    r"{0,60}$",
    re.IGNORECASE | re.DOTALL,
)


class Order(NamedTuple):
    """One drug with the doses and frequencies that are said of it, likeliest first."""

    drug: str
    dosages: list[str]
    frequencies: list[str]


def orders(text: str, drugs: Sequence[str]) -> list[Order]:
    """The orders of a list, in the order said; [] where fewer than two drugs in a row have a dose of their own."""
    found = max(_chains(text, drugs), key=len, default=[])
    if len(found) < 2:
        return []
    own = [item for _, _, said in found[:-1] for item in frequencies(said)]
    shared = [item for item in frequencies(text) if item not in own]
    return [Order(name, doses(said), frequencies(said) or shared) for _, name, said in found]


def places(text: str, names: Sequence[str]) -> list[tuple[int, str]]:
    """Where each name first stands in a text, and the name, in order."""
    return sorted((text.find(name), name) for name in names if name in text)


def _chains(text: str, drugs: Sequence[str]) -> list[list[tuple[int, str, str]]]:
    """Runs of drugs that are ordered one after the other: where each stands, its name, what is said of it."""
    found = places(text, drugs)
    ends = [*(start for start, _ in found[1:]), len(text)]
    chains: list[list[tuple[int, str, str]]] = [[]]
    for (start, name), end in zip(found, ends, strict=False):
        said = text[start + len(name) : end]
        if doses(said) and (chains[-1] or LEADS.search(text[:start])):
            chains[-1].append((start, name, said))
        if not doses(said) or not BETWEEN.match(_after_details(said)):
            chains.append([])
    return chains


def _after_details(said: str) -> str:
    """What follows the last dose or frequency."""
    ends = [said.rfind(item) + len(item) for item in (*doses(said), *frequencies(said)) if item in said]
    return said[max(ends, default=0) :]
