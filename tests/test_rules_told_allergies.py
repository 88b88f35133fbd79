"""What speaks against a drug by an allergy that a message tells of somebody in no record."""

import pytest

from docgemma.rules.told_allergies import allergy_lines
from tests.rules_help import dictionary


@pytest.mark.parametrize(
    ("said", "drug", "starts"),
    [
        (
            "41F, anaphylaxis to penicillin 2019. augmentin?",
            "augmentin",
            "Contraindicated (augmentin): Allergy to penic",
        ),
        ("pen allergic 30M, cefalexin ok?", "cefalexin", "Caution (cefalexin): Allergy to penicillin"),
        ("44F sulfa allergy, furosemide ok?", "furosemide", "Caution (furosemide): Allergy to sul"),
    ],
)
def test_a_told_allergy_speaks_against_a_drug(said: str, drug: str, starts: str) -> None:
    assert [line.startswith(starts) for line in allergy_lines(said, [drug], dictionary())] == [True]


@pytest.mark.parametrize(
    "said", ["no allergy to penicillin, augmentin?", "44F, no allergies. augmentin?", "augmentin?"]
)
def test_no_told_allergy_speaks_against_nothing(said: str) -> None:
    assert not list(allergy_lines(said, ["augmentin"], dictionary()))


def test_the_drug_somebody_is_allergic_to_is_not_checked_against_itself() -> None:
    assert not list(allergy_lines("aspirin allergic, ibuprofen?", ["aspirin"], dictionary()))
