"""Another unit, a wish with a dose, what is not recorded: each asked of the whole agent."""

import pytest


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ngozi adeyemi's hb in g/L?", "in g/L: about 114 (2026-08-05); 98 (2026-02-03), worked out from g/dL (x 10)."),
        ("O'Brien S vit D in nmol pls", "25-hydroxyvitamin D in nmol/L: about 84.9 (2026-10-27)"),
        ("sodium trend schäfer last 12 mths", "No earlier value is recorded: Sodium."),
        ("MELD for volkov", "A score is not worked out here: meld score."),
        ("has kamau ever had a dvt", "No problem is listed as: venous thromboembolism."),
        ("how many BP meds is Wanjiru Kamau on", "Active antihypertensives (3): olmesartan 40 mg once daily"),
        ("who wrote abernathy's last note", "names its department, not its author"),
        ("code status on moreau?", "No resuscitation status is recorded in this chart, which does not mean"),
        ("aza with febuxostat for wang, ok?", "Contraindicated: azathioprine for Xiaoming Wang."),
        ("mahmood refusing meds 3/7, restart clozapine?", "restart with 12.5 mg once or twice daily and titrate again"),
        ("is the dose of apixaban right for tanaka", "reduced with 2 of: 80 years or older; 60 kg or less"),
    ],
)  # fmt: skip
def test_what_was_asked_is_told_or_said_not_to_be_there(offline_agent, said: str, told: str) -> None:
    assert told in offline_agent.ask(said)["answer"]


@pytest.mark.parametrize(
    "said",
    [
        "m. moreau (PD) nauseated. stemetil 5mg tds?",
        "Mohammed Haddad no ppi! start omeprazole 20mg od?",
        "kamau K 3.4 - can i add slow-k 20 mEq daily",
        "zoe lefevre-dubois: she wants tramadol for neuropathic leg pain, 50 q6h prn",
    ],
)
def test_a_question_or_a_wish_with_a_dose_is_checked_and_gets_no_card(offline_agent, said: str) -> None:
    done = offline_agent.ask(said)
    assert not done["pending_write"] and done["tools"]


def test_who_is_asked_to_prepare_an_order_gets_its_card(offline_agent) -> None:
    said = "would you please prepare sumatriptan 50 mg once as needed for garcia?"
    assert offline_agent.ask(said)["pending_write"]["args"]["medication_name"] == "sumatriptan"
