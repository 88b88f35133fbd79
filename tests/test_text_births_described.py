"""Somebody who is described and not named: age and sex, and what is no age."""

import pytest

from docgemma.text.births import age_and_sex, tells_somebody


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("41F, dog bite", (41, "female")), ("M60 new DVT", (60, "male")), ("55 M, #ribs", (55, "male")),
        ("lady of 67 on thyroxine", (67, "female")), ("warfarin man 71", (71, "male")),
        ("temp 99F since noon", (None, "")), ("review in 3 m", (None, "")), ("ibuprofen 400 mg", (None, "")),
    ],
)  # fmt: skip
def test_age_and_sex(text: str, told: tuple[int | None, str]) -> None:
    assert age_and_sex(text) == told


@pytest.mark.parametrize("text", ["30/40, sore throat", "79yr, falls", "bf mum needs sertraline", "my lady of 67"])
def test_somebody_is_described(text: str) -> None:
    assert tells_somebody(text)


@pytest.mark.parametrize("text", ["max dose of paracetamol", "amox 500 tds 5/7", "garcia k?"])
def test_nobody_is_described(text: str) -> None:
    assert not tells_somebody(text)
