"""Instructions do not reach a clinician."""

import pytest

from docgemma.prompts import system
from docgemma.rules.grounding import without_instructions

SYNTHESIZE = system("synthesize")


@pytest.mark.parametrize("line", [line for line in SYNTHESIZE.splitlines() if line])
def test_every_line_of_the_instructions_is_taken_out(line: str) -> None:
    kept, removed = without_instructions(f"{line}\nDofetilide has a boxed warning.", SYNTHESIZE)
    assert kept == "Dofetilide has a boxed warning." and removed


def test_an_ordinary_answer_is_left_alone() -> None:
    answer = "If information was missing, ask. Use 5 mg. Critical findings: none."
    assert without_instructions(answer, SYNTHESIZE) == (answer, [])
    assert without_instructions(answer, "") == (answer, [])
