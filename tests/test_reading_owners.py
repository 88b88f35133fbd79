"""Entries of a message that names several patients: each goes to its own."""

import pytest

from docgemma.ehr.base import PatientMatch
from docgemma.reading.owners import owners
from docgemma.reading.patients import PatientLink

NAMES = ("Okafor", "Birch")


def people(message: str) -> list[PatientLink]:
    links = []
    for name in NAMES:
        start = message.find(name)
        if start >= 0:
            match = PatientMatch(id=name, name=name, birth_date="", sex="")
            links.append(PatientLink(start, start + len(name), name, "name", (match,), True))
    return sorted(links, key=lambda link: link.start)


@pytest.mark.parametrize(
    ("message", "drugs", "expected"),
    [
        ("paracetamol 1 g for Okafor and senna for Birch", ["paracetamol", "senna"], [["Okafor"], ["Birch"]]),
        ("Okafor paracetamol 1 g qds, Birch senna nocte", ["paracetamol", "senna"], [["Okafor"], ["Birch"]]),
        ("for Okafor: paracetamol; senna for Birch", ["paracetamol", "senna"], [["Okafor"], ["Birch"]]),
        ("put Okafor on paracetamol and Birch on senna", ["paracetamol", "senna"], [["Okafor"], ["Birch"]]),
        ("put Okafor on paracetamol and senna for Birch", ["paracetamol", "senna"], [["Okafor"], ["Birch"]]),
        ("start paracetamol for Okafor and for Birch senna", ["paracetamol", "senna"], [["Okafor"], ["Birch"]]),
        ("Birch senna and lactulose, paracetamol for Okafor", ["senna", "lactulose", "paracetamol"],
         [["Birch"], ["Birch"], ["Okafor"]]),
        ("Okafor & Birch both need paracetamol", ["paracetamol"], [["Okafor", "Birch"]]),
        ("paracetamol for Birch and Okafor please", ["paracetamol"], [["Birch", "Okafor"]]),
        ("paracetamol for Okafor, who is next to Birch", ["paracetamol"], [["Okafor"]]),
    ],
)  # fmt: skip
def test_each_entry_goes_to_its_own_patient(message, drugs, expected):
    assert owners(message, [message.find(drug) for drug in drugs], people(message)) == expected
