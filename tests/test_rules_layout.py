"""The answer leads with one conclusion, says each fact once under a short heading, and numbers its sources."""

from datetime import date

import pytest

from docgemma.rules.answer import compose
from docgemma.rules.layout import Answer
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, MODERATE, NOTE, UNCHECKED, Finding
from tests.rules_help import (
    allergic,
    chart,
    dictionary,
    drug,
    measured,
    person,
    request,
    result,
    turn,
)
from tests.test_rules_answer import label

SMITH = [person()]
EGFR = measured(
    "eGFR", "41", "mL/min", flag="low",
    earlier=[{"value": "46", "date": "2026-04-06"}, {"value": "49", "date": "2025-10-01"}],
)  # fmt: skip
PENICILLIN = allergic("penicillin", "anaphylaxis", "severe")


def made(asked, *results, checks=None) -> Answer:
    return compose(turn(asked, *results), dictionary(), checks or {})


def lead(*given, **more) -> str:
    answer = made(*given, **more)
    return answer.lead.text if answer.lead else ""


def asked_about(name: str, *findings: Finding, **more) -> Answer:
    asked = request("may", patients=SMITH, drugs=[drug(name)], said=f"can he have {name}")
    charts = [chart("warfarin", labs=[EGFR], allergies=[PENICILLIN], **more)]
    return made(asked, *charts, checks={("abc-123", name): findings})


def test_the_gravest_finding_leads_and_is_said_once() -> None:
    worst = Finding(CONTRAINDICATED, "Allergy to penicillin (anaphylaxis, severe): amoxicillin is a penicillin.")
    other = Finding(MAJOR, "Major interaction with warfarin: bleeding.")
    answer = asked_about("amoxicillin", other, worst, Finding(UNCHECKED, "the dose (none is given)"))
    first = answer.text.splitlines()[0]
    assert first.startswith("Contraindicated: amoxicillin for John Smith. Allergy to penicillin (anaphylaxis, severe)")
    assert answer.text.count("is a penicillin") == 1 and other.text in answer.text and "(none is given)" in answer.text


def test_a_finding_that_rests_on_a_result_leads_with_it_and_says_where_the_drug_is_contraindicated() -> None:
    findings = [
        Finding(MODERATE, "Caution (metformin): older people: check. The patient is 68 years old.", "the patient …"),
        Finding(MODERATE, "Caution (metformin): weigh it. Latest eGFR: 41.", "latest eGFR 41 (2026-10-12): weigh it."),
    ]
    asked = request("may", patients=SMITH, drugs=[drug("metformin")])
    answer = made(asked, chart("warfarin", labs=[EGFR]), label(), checks={("abc-123", "metformin"): findings})
    assert answer.lead and answer.lead.text == (
        "Caution: metformin for John Smith. Latest eGFR 41 (2026-10-12): weigh it; contraindicated: eGFR below 30."
    )
    assert answer.lead.entry and answer.lead.entry.name == "eGFR"


@pytest.mark.parametrize("findings", [[], [Finding(UNCHECKED, "the dose")], [Finding(NOTE, "Results to weigh: x.")]])
def test_where_nothing_can_be_concluded_nothing_leads(findings: list[Finding]) -> None:
    answer = asked_about("amoxicillin", *findings)
    assert answer.lead is None and answer.text.startswith("Patient: ")


def test_two_drugs_without_findings_are_both_said_to_have_none() -> None:
    asked = request("may", patients=SMITH, drugs=[drug("cetirizine"), drug("loratadine")])
    text = made(asked, chart("warfarin"), checks={("abc-123", "cetirizine"): [], ("abc-123", "loratadine"): []}).text
    assert "Cetirizine for John Smith: no finding" in text and "Loratadine for John Smith: no finding" in text


def test_a_result_that_was_asked_for_leads_with_its_date_and_direction() -> None:
    asked = request("labs", patients=SMITH, measures=["eGFR"], said="his eGFR?")
    days = (date.today() - date(2026, 10, 12)).days
    assert lead(asked, chart(labs=[EGFR])) == f"eGFR 41 mL/min (2026-10-12, {days} days ago), low, falling."


def test_an_order_that_stands_more_than_once_is_said_so() -> None:
    twice = chart("doxycycline", "doxycycline", "lisinopril")
    text = made(request("meds", patients=SMITH), twice).text
    assert "Ordered 2 times, the same each time: doxycycline" in text and "lisinopril" in text


@pytest.mark.parametrize(
    ("taken", "first"),
    [
        ("doxycycline", "Active antibiotics (1): doxycycline"),
        ("lisinopril", "No active medication is listed as: antibiotics"),
    ],
)
def test_a_kind_of_medicine_that_was_asked_for_leads(taken: str, first: str) -> None:
    asked = request("meds", patients=SMITH, measures=["abx"], said="is he on any abx?")
    assert lead(asked, chart(taken)).startswith(first)


def test_a_finding_on_an_interaction_is_cited_to_the_interactions_and_not_to_the_chart() -> None:
    asked = request("may", patients=SMITH, drugs=[drug("ibuprofen")])
    findings = [
        Finding(CONTRAINDICATED, "Contraindicated (x): y."),
        Finding(MAJOR, "Major interaction with warfarin: z."),
    ]
    pairs = result("check_drug_interactions", data={"interactions": []})
    answer = made(asked, chart("warfarin"), pairs, checks={("abc-123", "ibuprofen"): findings})
    assert [fact.cite for block in answer.blocks for fact in block if "interaction with" in fact.text] == [2]


def test_a_chart_leads_with_its_severe_allergy_and_critical_results_and_a_mild_one_does_not_lead() -> None:
    critical = measured("Potassium", "6.9", "mmol/L", flag="critically high")
    found = lead(request("chart", patients=SMITH), chart(labs=[EGFR, critical], allergies=[PENICILLIN]))
    assert (
        found.startswith("Severe allergy: penicillin (anaphylaxis).") and "Potassium 6.9" in found and "41" not in found
    )
    assert lead(request("alg", patients=SMITH), chart(allergies=[allergic("latex", "rash", "mild")])) == ""


def test_interactions_lead_with_the_gravest_pairs() -> None:
    pairs = [("major", "warfarin", "aspirin"), ("major", "warfarin", "ibuprofen"), ("moderate", "aspirin", "ibuprofen")]
    found = [{"severity": severity, "drugs": [a, b]} for severity, a, b in pairs]
    told = result("check_drug_interactions", {}, data={"interactions": found}, text="Warfarin with aspirin: major.")
    asked = request("ddi", drugs=[drug("warfarin"), drug("aspirin")])
    assert lead(asked, told) == "Major interaction: warfarin with aspirin; warfarin with ibuprofen."


def test_two_patients_have_no_common_conclusion() -> None:
    two = [*SMITH, person("def-456", "Maria Garcia")]
    charts = chart(allergies=[PENICILLIN]), chart(patient_id="def-456", name="Maria Garcia")
    assert lead(request("alg", patients=two), *charts) == ""


def test_a_heading_is_said_once_and_one_entry_stays_one_line() -> None:
    text = made(request("meds", "alg", patients=SMITH), chart("metformin", "lisinopril", allergies=[PENICILLIN])).text
    assert text.count("Active medications") == 1 and "\n- metformin" in text and "\n- lisinopril" in text
    assert "\nAllergies: penicillin (anaphylaxis, severe)" in text


def test_a_warning_is_printed_once_also_where_it_was_asked_for() -> None:
    asked = request("safe", drugs=[drug("metformin")], said="metformin warnings and contraindications")
    text = made(asked, label(warnings=["vitamin B12 deficiency", "alcohol"])).text
    assert text.count("vitamin B12 deficiency") == 1 and text.count("warnings") == 1 and "eGFR below 30" in text


def test_sources_are_numbered_as_the_report_lists_them() -> None:
    found = result("search_patient", {}, data={"patients": []}, text="")
    asked = request("meds", "safe", patients=SMITH, drugs=[drug("metformin")])
    text = made(asked, found, chart("lisinopril", "warfarin"), label()).text
    assert "Active medications [2]:" in text and "eGFR below 30. [3]" in text and "[1]" not in text


def test_every_entry_names_its_line_of_the_chart_and_a_result_its_values() -> None:
    [facts] = [group["facts"] for group in made(request("labs", patients=SMITH), chart(labs=[EGFR])).groups[-2:-1]]
    assert facts[0]["entry"] == {"patient": "abc-123", "section": "labs", "name": "eGFR"}
    assert [point["value"] for point in facts[0]["trend"]["points"]] == [49, 46, 41]


def test_what_is_no_number_has_no_trend() -> None:
    for value in ("see report", "nan", "Infinity"):
        texts = measured("Culture", value, earlier=[{"value": "1", "date": "2026-04-06"}])
        [group] = made(request("labs", patients=SMITH), chart(labs=[texts])).groups[-1:]
        assert group["facts"][0]["trend"] is None


def test_a_note_that_calls_itself_an_allergy_is_not_listed_among_the_allergies() -> None:
    note = {"type": "Allergies", "date": "", "author": "", "text": "none known"}
    groups = made(request("alg", "notes", patients=SMITH), chart(notes=[note], allergies=[PENICILLIN] * 2)).groups
    assert not any(group["title"] == "Allergies" and "none known" in str(group) for group in groups)
