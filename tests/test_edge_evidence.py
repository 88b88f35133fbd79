"""Which lines of a result the edge model reads."""

import pytest

from docgemma.edge.evidence import LABEL, RECORD, focus, shown_lines, topics

CHART = "\n".join(
    ["Patient Ann Ex, female, born 1950-01-01, patient ID axx-001.", "Allergy: Penicillin (rash, severe)."]
    + [f"Active problem: Problem number {number} of a long list." for number in range(20)]
    + ["Lab: INR 2.4 (2026-01-01).", "Immunization: Influenza vaccine, 2025-10-01."]
)


def test_the_head_and_what_is_asked_for_are_kept_whatever_their_place():
    shown = shown_lines(CHART, "latest INR?", 300)
    assert shown[:2] == CHART.splitlines()[:2]
    assert "Lab: INR 2.4 (2026-01-01)." in shown
    assert shown[-1] == "…"


def test_a_short_result_is_shown_whole_on_one_line():
    assert focus("One.\nTwo.", "anything", 600) == "One. | Two."


def test_lines_stay_in_their_own_order():
    shown = [line for line in shown_lines(CHART, "flu shot and INR?", 400) if line != "…"]
    assert shown == sorted(shown, key=CHART.splitlines().index)


@pytest.mark.parametrize(
    "caveat",
    [
        "Demonstration records are invented examples and must not be cited.",
        "The live service could not be reached; this is from the offline snapshot.",
        "Zorvantil was not found in this source; its interactions were not checked.",
        "No lab results are recorded.",
    ],
)
def test_a_caveat_is_never_left_out(caveat):
    assert caveat in shown_lines(f"{CHART}\n{caveat}", "problems?", 200)


@pytest.mark.parametrize(
    ("question", "kinds", "names"),
    [
        ("what is he allergic to", RECORD, ["allergies"]),
        ("Has she had a flu shot?", RECORD, ["vaccinations"]),
        ("latest potassium and creatinine", RECORD, ["creatinine", "potassium"]),
        ("show the chart", RECORD, []),
        ("is it safe in pregnancy?", LABEL, ["pregnancy"]),
        ("any boxed warning", LABEL, []),
    ],
)
def test_a_question_says_what_it_asks_of_a_result(question, kinds, names):
    assert [topic.name for topic in topics(question, kinds)] == names


def test_a_long_line_is_cut_at_a_sentence():
    (line,) = shown_lines("A sentence that goes on for a while. " * 20, "x", 600)
    assert len(line) <= 240 and line.endswith(" …")
