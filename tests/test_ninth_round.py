"""What answers on doses, missed doses and two drugs at once lacked: asked in other words."""

import pytest


@pytest.mark.parametrize(
    ("said", "told", "untold"),
    [
        # a maximum is no starting dose; a band of worse kidneys does not lead
        ("initial dose of allopurinol at egfr 28", "starting dose (label and criteria", ": oral, eGFR below 20: 200"),
        ("febuxostat, where do i start at egfr 22", "does not mention starting dose", "starting dose (label"),
        ("highest colchicine dose with clarithromycin if egfr 18", "Contraindicated in renal or hepatic impair", None),
        # a child's weight band leads, and what its note gives per kg is worked out
        ("child of 18 kg in anaphylaxis, im adrenaline dose?", "0.01 mg/kg: 0.18 mg at 18 kg", "injection: 1 mg"),
        ("adrenaline dose for Liam Andersen in anaphylaxis", "0.21 mg at 21 kg", "none is stored for a child"),
        ("glucagon dose for a hypo, 5 yo of 18 kg", "below 20 kg: 0.5 mg in one dose", "none is stored for a child"),
        # what is for a form or an indication that is not told stands behind
        ("newborn of 3.5 kg, gentamicin dose", "below 12 years, at 3.5 kg: 26.25 mg a day", "cystic fibrosis, below"),
        ("max bupivacaine for a 5 kg baby", "at 5 kg: 12.5 mg in one dose (2.5 mg/kg)", "liposomal, below"),
        ("caudal in a child of 12 kg, bupivacaine max", "at 12 kg: 30 mg in one dose", "400 mg a day"),
        # without a route the other systemic one is told too
        ("dantrolene dose in malignant hyperthermia, 80 kg", "injection, at 80 kg: 800 mg a day (10 mg/kg)", None),
        ("prednisolone dose and salbutamol nebs for Liam Andersen", "oral, below 12 years, at 21 kg: 42 mg", None),
        # volumes are worked out of a told strength, or it is said that they are not
        ("max lidocaine 2% for 60 kg, how many ml", "270 mg in one dose (4.5 mg/kg) = 13.5 mL of 20 mg/mL", None),
        ("child 12 kg, paracetamol 250mg/5ml, how many mls", "180 mg in one dose (15 mg/kg) = 3.6 mL of 50", None),
        ("adrenaline 1:1000 im for a child of 20 kg in anaphylaxis, dose in ml", "0.2 mg = 0.2 mL of 1 mg/mL", None),
        ("max lidocaine for 60 kg, how many ml", "so no mL were worked out", None),
        ("bupivacaine 0.5% max ml in 50 kg", "of 5 mg/mL", "patient ID"),
        ("lidocaine 2% with adrenaline, max for 70 kg", "adrenaline, at 70 kg: 490 mg", "Lidocaine with epinephrine"),
        # what was asked, not its drug's name, a patient's words or another topic
        ("dose of magnesium sulfate in eclampsia", "intravenous loading 4 to 6 g", "electrolytes (label"),
        ("child 16 kg, how much ondansetron", "at 16 kg", "not verified): severe hepatic"),
        ("she forgot a dose of rivaroxaban, advice?", "does not mention missed doses", "stop at least 24 hours"),
        ("does semaglutide need the fridge", "does not mention storage", None),
        ("can he lie down after doxycycline", "Doxycycline, administration", None),
        ("hold methotrexate before a hip replacement?", "does not mention withdrawal and stopping", "stopping (label"),
        ("stress dose hydrocortisone for a hysterectomy?", "does not mention steroid cover or a stress dose", None),
        ("reversal agent for heparin? and for digoxin", "Heparin", "Digoxin with heparin"),
        ("gabapentin maximum daily dose, and at crcl 28", "Gabapentin maximum adult daily dose: 3600 mg", None),
        ("beers criteria for lorazepam?", "Lorazepam", "is listed as affecting lorazepam"),
    ],
)  # fmt: skip
def test_an_answer_tells_what_was_asked(offline_agent, said, told, untold) -> None:
    answer = offline_agent.ask(said)["answer"]
    assert told in answer
    assert not untold or untold not in answer


def test_a_follow_up_that_adds_two_drugs_keeps_the_one_before(offline_agent) -> None:
    first = offline_agent.ask("contraindications of simvastatin")
    answer = offline_agent.ask("and with clarithromycin + amlodipine?", thread=first["thread"])["answer"]
    assert "simvastatin" in answer.casefold()
