"""What a patient may have of a group of drugs, or for a complaint: each is checked against the chart."""

import pytest


@pytest.mark.parametrize(
    ("said", "lead", "why"),
    [
        ("moreau vomiting, which antiemetic can he have", "that it suits): ondansetron;", "opposes levodopa"),
        ("priya raghunathan has a uti, what abx can she have?", "contraindicated: nitrofurantoin", "is the same drug"),
        ("aisha rahman sinusitis. what would you give", "contraindicated: amoxicillin,", "same class"),
    ],
)  # fmt: skip
def test_each_option_is_checked_and_the_check_leads(offline_agent, said: str, lead: str, why: str) -> None:
    answer = offline_agent.ask(said)["answer"]
    first = answer.splitlines()[0]
    assert first.startswith("Checked for this patient, ") and lead in first and "clinician's decision" in first
    assert why in answer


def test_options_for_what_was_told_before_and_none_where_a_drug_is_named(offline_agent) -> None:
    thread = offline_agent.ask("d'angelo chiara has a uti again, allergies?")["thread"]
    answer = offline_agent.ask("so what can she have", thread=thread)["answer"]
    assert answer.startswith("Checked for this patient, antibiotics for urinary tract infection: ")
    assert "sulfamethoxazole and trimethoprim, ciprofloxacin. Others" in answer.splitlines()[0]
    assert "Checked for this patient" not in offline_agent.ask("can moreau have ondansetron, he is vomiting")["answer"]


def test_the_drugs_of_each_complaint_stand_in_the_label_data() -> None:
    from docgemma.knowledge.drug_rules import doses_of
    from docgemma.text.words import clinical

    uses = clinical("drug_groups")["uses"]
    assert len(uses) > 10 and not [name for use in uses for name in use["drugs"] if not doses_of(name)]
