"""The auditor: what stands where, what a sentence affirms, which side, how much; contradictions; confidence."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgemma.knowledge.drug_names import load_drug_names
from docgemma.rcm.assertion import hits, status
from docgemma.rcm.audit import confidence, escalation, faults, verify
from docgemma.rcm.contradictions import contradictions
from docgemma.rcm.measures import holds
from docgemma.rcm.records import REVIEW, Identity, Judged
from docgemma.rcm.sentences import sentences_of, words_of
from docgemma.rcm.sides import same_part, sides
from tests.rcm_documents import claim, document, page

TODAY = date(2026, 11, 1)
STANDS = [
    ("Completed 14 weeks of PT without lasting improvement.", "pt", "affirmed"),
    ("No relief after 12 weeks of physical therapy.", "physical therapy", "affirmed"),
    ("PT was not helpful.", "pt", "affirmed"),
    ("Completed PT and denied numbness.", "pt", "affirmed"),
    ("No fracture, severe osteoarthritis of the knee.", "osteoarthritis", "affirmed"),
    ("Denies numbness but has weakness.", "weakness", "affirmed"),
    ("Not only pain but weakness.", "pain", "affirmed"),
    ("She did not respond to naproxen.", "naproxen", "affirmed"),
    ("Husband reports loud snoring.", "snoring", "affirmed"),
    ("Mother reports that he had a seizure.", "seizure", "affirmed"),
    ("Injection given in May 2026.", "injection", "affirmed"),
    ("Exercises as prescribed.", "exercise", "affirmed"),
    ("Pain despite no infection.", "pain", "affirmed"),
    ("Infection: treated in 2020.", "infection", "affirmed"),
    ("PT w/o relief.", "pt", "affirmed"),
    ("PT x 12 weeks, no improvement; injection refused.", "pt", "affirmed"),
    ("Family medicine follows her diabetes.", "diabetes", "affirmed"),
    ("Seen by Dr. Will Adams for knee pain.", "knee pain", "affirmed"),
    ("He no-showed twice, then completed PT.", "pt", "affirmed"),
    ("Patient denies fever, chills, or chest pain.", "chest pain", "negated"),
    ("No evidence of active infection.", "infection", "negated"),
    ("No infection, fracture or tumor.", "tumor", "negated"),
    ("Infection was ruled out by aspiration.", "infection", "negated"),
    ("Prior injections: none.", "injection", "negated"),
    ("Physical therapy: not tried", "physical therapy", "negated"),
    ("PT, NSAIDs and injections were not tried.", "pt", "negated"),
    ("Wasn't able to do PT.", "pt", "negated"),
    ("She can't take ibuprofen.", "ibuprofen", "negated"),
    ("He has never had physical therapy.", "physical therapy", "negated"),
    ("Denied smoking.", "smoking", "negated"),
    ("She has yet to try PT.", "pt", "negated"),
    ("Negative for infection.", "infection", "negated"),
    ("Absence of infection on culture.", "infection", "negated"),
    ("Physical therapy has not been done.", "physical therapy", "negated"),
    ("PT was declined.", "pt", "negated"),
    ("Declined PT.", "pt", "negated"),
    ("A non-smoker.", "smoker", "negated"),
    ("Neither PT nor injections were tried.", "injection", "negated"),
    ("Medication instead of physical therapy.", "physical therapy", "negated"),
    ("No improvement noted.", "improvement", "negated"),
    ("MRI: negative", "mri", "negated"),
    ("The knee is free of infection.", "infection", "negated"),
    ("Steroid injection was never done.", "steroid injection", "negated"),
    ("If pain persists, consider injection.", "injection", "hypothetical"),
    ("If pain persists after PT, we will talk.", "pt", "hypothetical"),
    ("May benefit from PT.", "pt", "hypothetical"),
    ("She could try PT.", "pt", "hypothetical"),
    ("R/O septic arthritis.", "septic arthritis", "hypothetical"),
    ("We recommended physical therapy.", "physical therapy", "hypothetical"),
    ("Discussed injection.", "injection", "hypothetical"),
    ("Physical therapy was offered.", "physical therapy", "hypothetical"),
    ("Will start PT.", "pt", "planned"),
    ("Start PT.", "pt", "planned"),
    ("Plan: PT twice weekly.", "pt", "planned"),
    ("Referred to physical therapy.", "physical therapy", "planned"),
    ("Physical therapy is scheduled for Monday.", "physical therapy", "planned"),
    ("PT ordered.", "pt", "planned"),
    ("Awaiting MRI.", "mri", "planned"),
    ("Goal BMI below 35.", "bmi", "planned"),
    ("She agreed to start PT.", "pt", "planned"),
    ("Her mother had diabetes.", "diabetes", "family"),
    ("Family history: medullary thyroid cancer.", "medullary thyroid cancer", "family"),
    ("Diabetes runs in the family.", "diabetes", "family"),
    ("His father and brother had knee replacements.", "knee replacement", "family"),
    ("Breast cancer in a sister.", "breast cancer", "family"),
    ("Her sister failed 14 weeks of PT.", "pt", "family"),
    ("PT recommended x 12 weeks.", "pt", "hypothetical"),
    ("Once she has completed 12 weeks of PT without relief, we request surgery.", "pt", "hypothetical"),
    ("The policy asks for 12 weeks of PT without relief.", "pt", "hypothetical"),
    ("Needs PT for 12 weeks.", "pt", "hypothetical"),
    ("Anticipate PT for 12 weeks.", "pt", "planned"),
    ("Smoking status: Never", "smoking", "negated"),
    ("PT declined by the patient.", "pt", "negated"),
    ("Denies any personal or family history of thyroid cancer.", "thyroid cancer", "negated"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "term", "wanted"), STANDS)
def test_a_sentence_affirms_only_what_is_neither_denied_nor_planned_nor_considered_nor_a_relatives(text, term, wanted):
    words = words_of(text)
    assert [status(words, *spot) for spot in hits([term], words)] == [wanted]


def test_a_heading_tells_that_what_follows_is_of_the_family_or_a_plan():
    words = words_of("Diabetes, PT twice weekly.")
    assert {status(words, 0, 1, "Family History"), status(words, 1, 2, "PLAN"), status(words, 0, 1, "History")} == {
        "family", "planned", "affirmed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Left knee pain", "left"), ("Pain in the RIGHT hip", "right"), ("L knee pain", "left"),
        ("R TKA requested", "right"), ("knee (R) is swollen", "right"), ("Rt. shoulder", "right"),
        ("b/l knee OA", "left right"), ("bilateral hips", "left right"), ("both knees", "left right"),
        ("right and left knee films", "left right"), ("She left the clinic in pain", ""), ("on 2 L NC", ""),
        ("R/O fracture", ""), ("right-hand dominant", ""), ("L4-L5 disc", ""), ("left ventricular function", ""),
        ("nothing left to try", ""), ("l knee, typed without a capital", ""),
    ],
)  # fmt: skip
def test_sides_are_read_as_clinicians_write_them(text, wanted):
    assert sides(text) == set(wanted.split())


def test_a_leg_may_be_a_knee_but_a_hip_never_is():
    assert same_part("left leg pain", "MRI of the knee")
    assert not same_part("hip pain", "knee replacement")
    assert not same_part("shoulder pain", "knee replacement")


BMI = {"name": ["bmi"], "unit": "kg/m2", "below": 40, "bare": True}
PT = {"name": ["physical therapy", "pt"], "unit": "week", "at_least": 12}
PAIN = {"name": ["pain"], "unit": "month", "at_least": 6}
A1C = {"name": ["a1c"], "unit": "%", "at_most": 8.0, "bare": True}
AHI = {"name": ["ahi"], "unit": "/h", "at_least": 15, "bare": True}
KL = {"name": ["kl", "kellgren lawrence"], "unit": "grade", "at_least": 3, "bare": True}
EF = {"name": ["ef"], "unit": "%", "at_most": 40, "bare": True}
VA = {"name": ["bcva"], "unit": "20/", "at_least": 50}
SHOT = {"name": ["injection"], "unit": "day", "at_least": 90, "ago": True}
REVIEWED = {"name": ["follow up"], "unit": "day", "at_least": 31, "at_most": 91}
NUMBERS = [
    ("BMI 33.1", BMI, "yes"), ("BMI: 41.3 kg/m2", BMI, "no"), ("BMI 40", BMI, "no"),
    ("BMI >40", BMI, "no"),     ("BMI <40", BMI, "yes"), ("BMI over 35", BMI, "unknown"),
    ("weight 33 kg", BMI, "unknown"), ("BMI", BMI, "unknown"),     ("BMI 44 in 2024, now 38", BMI, "yes"),
    ("BMI went from 44 to 38", BMI, "yes"), ("BMI 38.2 kg/m², A1c 9", BMI, "yes"),     ("PT for 14 weeks", PT, "yes"),
    ("PT x 12 wks", PT, "yes"), ("12wks of PT", PT, "yes"),
    ("three months of PT", PT, "yes"),     ("PT for 11 weeks", PT, "no"), ("PT for less than 12 weeks", PT, "no"),
    ("PT for 8-10 weeks", PT, "no"),     ("PT for 10 to 14 weeks", PT, "no"), ("PT for at least 12 weeks", PT, "yes"),
    ("PT from 2026-04-06 to 2026-06-29", PT, "yes"),     ("PT in 2026", PT, "unknown"),
    ("PT 3 weeks ago", PT, "unknown"),
    ("pain; 14 weeks off work, no PT", PT, "yes"),     ("pain for over 6 months", PAIN, "yes"),
    ("pain for over a year", PAIN, "unknown"),
    ("pain for 2 years", PAIN, "yes"),     ("pain since 2026-01-10", PAIN, "yes"),
    ("8-month history of pain", PAIN, "yes"),
    ("pain began 9 months ago", PAIN, "yes"),     ("pain 8/10", PAIN, "unknown"), ("pain for 5 months", PAIN, "no"),
    ("A1c of 9.2%", A1C, "no"), ("A1c 7.1", A1C, "yes"),     ("ferritin 9, A1c 7.1", A1C, "yes"),
    ("A1c 7.1, ferritin 9", A1C, "yes"), ("AHI 23 events/h", AHI, "yes"),     ("AHI 3.2 per hour", AHI, "no"),
    ("AHI of 15", AHI, "yes"), ("KL grade III", KL, "yes"), ("KL 2", KL, "no"),     ("KL grade 3-4", KL, "yes"),
    ("KL grade II-III", KL, "no"), ("Kellgren-Lawrence grade IV", KL, "yes"),     ("EF 30-35 %", EF, "yes"),
    ("EF 55%", EF, "no"), ("EF less than 40%", EF, "yes"), ("BCVA 20/70", VA, "yes"),     ("BCVA 20/25", VA, "no"),
    ("injection 7 months ago", SHOT, "yes"),
    ("injection 5 weeks ago", SHOT, "no"),     ("injection on 2026-07-13", SHOT, "yes"),
    ("follow up in 60 days", REVIEWED, "yes"),
    ("follow up in 2 weeks", REVIEWED, "no"),     ("follow up in 6 months", REVIEWED, "no"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "measure", "wanted"), NUMBERS)
def test_a_number_counts_with_its_unit_its_comparator_and_its_name(text, measure, wanted):
    assert holds(sentences_of([document(text)], TODAY)[0], measure, TODAY) == wanted


NOTE = """She completed 14 weeks of super-
vised physical   therapy at our
clinic. “No lasting relief” — she says.
She denies any numbness in the right leg."""


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("completed 14 weeks of supervised physical therapy at our clinic.", True),
        ("completed 14 weeks of super-vised physical therapy", True),
        ('"No lasting relief" - she says.', True),
        ("completed 14 weeks of Supervised physical therapy", False),
        ("4 weeks of supervised physical therapy", False),
        ("14 weeks of physical therapy", False),
        ("clinic “No lasting relief”", False),
        ("vised physical therapy", False),
        ("", False),
    ],
)
def test_a_quote_stands_word_for_word_but_for_blanks_line_ends_and_typographic_marks(quote, stands):
    assert verify(claim(quote, quote), [document(NOTE)])["verified"] == stands


@given(st.data())
def test_a_quote_altered_in_one_letter_never_verifies(data):
    quote = "She completed 14 weeks of super-\nvised physical   therapy at our\nclinic."
    at = data.draw(st.sampled_from([place for place, char in enumerate(quote) if char.isalnum()]))
    other = data.draw(st.characters(categories=["L", "N"]).filter(lambda char: char != quote[at]))
    assert verify(claim("It was done.", quote), [document(NOTE)])["verified"]
    assert not verify(claim("It was done.", quote[:at] + other + quote[at + 1 :]), [document(NOTE)])["verified"]


@pytest.mark.parametrize(
    "changed",
    [{"document": ""}, {"page": None}, {"section": ""}, {"document": "other.pdf"}, {"page": 2}, {"section": "Plan"}],
)
def test_a_claim_without_its_place_or_with_another_one_cannot_pass(changed):
    good = claim("She denies any numbness.", "She denies any numbness in the right leg.")
    assert verify(good, [document(NOTE)])["verified"]
    assert not verify({**good, **changed}, [document(NOTE)])["verified"]


def test_nothing_of_a_page_that_could_not_be_read_verifies():
    failed = document(NOTE)
    failed["pages"][0]["failed"] = "Extraction Failed: a scan"
    assert faults(claim("x", "at our"), [failed])


@pytest.mark.parametrize(
    ("said", "quote", "text"),
    [
        ("There is infection.", "evidence of infection", "There is no evidence of infection."),
        ("She has numbness.", "any numbness in the right leg", NOTE),
        ("PT was done.", "start PT", "She will start PT on Monday."),
        ("Physical therapy was completed.", "PT next month", "Begin PT next month."),
        ("She had an injection.", "consider injection", "If pain persists, consider injection."),
        ("She has diabetes.", "had diabetes", "Her mother had diabetes."),
        ("No infection.", "infection of the knee", "There is infection of the knee."),
        ("Left knee pain.", "right knee pain", "She has right knee pain."),
        ("Naproxen for 16 weeks.", "naproxen for 6 weeks", "She took naproxen for 6 weeks."),
    ],
)
def test_a_quote_bears_out_nothing_that_its_sentence_denies_plans_considers_or_says_of_another(said, quote, text):
    assert faults(claim(said, quote), [document(text)])


def test_the_side_that_is_claimed_is_held_against_the_quote_and_its_sentence():
    text = "The left knee shows severe osteoarthritis. Both hips are normal."
    said = [claim(f"Severe osteoarthritis, {side}.", "severe osteoarthritis.") for side in ("right", "left")]
    assert faults(said[0], [document(text)]) == ["the quote is of the other side"]
    assert not faults(said[1], [document(text)])
    assert not faults(claim("The right hip is normal.", "Both hips are normal."), [document(text)])


def who(name: str = "", born: str = "") -> Identity:
    return Identity(name=name, birth_date=born)


@pytest.mark.parametrize(
    ("asked", "passes"),
    [
        (who("Maria Gonzalez", "1961-03-04"), True), (who("Gonzalez, Maria L."), True), (who("M Gonzalez"), True),
        (who("Maria Gonzalez", "1961-03-05"), False), (who("Marta Gonzalez"), False), (who("", "1970-01-01"), False),
    ],
)  # fmt: skip
def test_a_page_of_another_patient_supports_nothing(asked, passes):
    read = document("Patient: Maria Gonzalez   DOB: 1961-03-04\nBMI 33.1 today.", "A1c 7.1 today.")
    assert (not faults(claim("BMI", "BMI 33.1 today."), [read], asked=asked)) == passes
    assert (not faults(claim("A1c", "A1c 7.1 today.", page=2), [read], asked=asked)) == passes


def test_a_page_in_between_that_names_somebody_else_supports_nothing_from_there_on():
    read = document("Patient: Maria Gonzalez\nBMI 33.1.", "Patient: Renee Boudreaux\nA1c 7.1.", "EF 55%.")
    asked = who("Maria Gonzalez")
    found = [
        faults(claim(quote, quote, page=at), [read], asked=asked)
        for at, quote in enumerate(["BMI 33.1.", "A1c 7.1.", "EF 55%."], 1)
    ]
    assert found == [[], ["the page names another patient"], ["the page names another patient"]]


def test_a_request_for_one_side_and_a_note_of_the_other_are_cited_from_both():
    note = document("Left leg pain for 3 months. Exam: left knee effusion.")
    found = contradictions([note, document("Procedure requested: MRI right knee.", name="request.pdf")], today=TODAY)
    assert [(one["one"]["document"], one["other"]["quote"]) for one in found] == [
        ("request.pdf", "Left leg pain for 3 months.")
    ]
    assert contradictions([note], question="Does she meet criteria for a right knee MRI?", today=TODAY)
    assert not contradictions([note], question="Does she meet criteria for a left knee MRI?", today=TODAY)
    assert not contradictions([note], question="Does she meet criteria for a right shoulder MRI?", today=TODAY)


@pytest.mark.parametrize(
    ("days", "first", "second", "conflict"),
    [
        (2, "Knee pain is stable.", "Knee pain is worsening.", True),
        (2, "Condition stable.", "Condition worsening.", True),
        (14, "Her asthma is well controlled.", "Asthma poorly controlled.", True),
        (15, "Knee pain is stable.", "Knee pain is worsening.", False),
        (2, "Knee pain is stable.", "Cough is worsening.", False),
        (2, "Knee pain is stable.", "Knee pain is not worsening.", False),
        (2, "Left knee stable.", "Right knee worsening.", False),
    ],
)
def test_the_course_of_one_problem_may_not_differ_between_visits_of_two_weeks(days, first, second, conflict):
    pages = [f"Date of service: 2026-10-05\n{first}", f"Visit date: 10/{5 + days:02}/2026\n{second}"]
    assert bool(contradictions([document(*pages)], today=TODAY)) == conflict
    assert not contradictions([document(first, second)], today=TODAY)


def test_a_requested_drug_is_held_against_the_allergies_that_are_stated():
    names = load_drug_names()
    note = document("Allergies: penicillin (anaphylaxis).")
    found = contradictions([note], drug="amoxicillin", drugs=names, today=TODAY)
    assert len(found) == 1
    assert found[0]["other"]["quote"] == "Allergies: penicillin (anaphylaxis)."
    assert not contradictions([note], drug="metformin", drugs=names, today=TODAY)
    assert not contradictions([document("Denies allergy to penicillin.")], drug="amoxicillin", drugs=names, today=TODAY)


def judged(verdict: str, quote: str = "x") -> Judged:
    said = "" if verdict == "NOT DOCUMENTED" else quote
    return Judged(id="X.1", text="Text.", verdict=verdict, quote=said, document="", page=1, section="", why="")  # type: ignore[typeddict-item]


def test_confidence_is_the_weighted_formula_and_says_what_a_missing_part_weighs():
    good, bad = claim("a", "a", verified=True), claim("b", "b")
    full = confidence([good, good, good, bad], [])
    assert full["parts"] == {"audit_pass_rate": 0.75, "citation_density": 1.0, "self_assessment": None}
    assert full["score"] == pytest.approx(0.625 * 0.75 + 0.375, abs=1e-4)
    edge = confidence([good, good], [judged("MET"), judged("NOT DOCUMENTED")])
    assert edge["parts"]["self_assessment"] is None
    assert edge["weights"]["audit_pass_rate"] == pytest.approx(0.625)
    assert edge["score"] == pytest.approx(0.625 + 0.375 * 0.5)
    assert confidence([], [])["score"] == confidence([bad], [])["score"] == 0


def test_what_a_person_must_see_is_said_line_by_line():
    assert escalation([judged("MET")], [], False, 0.95, False) == []
    pair = contradictions([document("Left knee pain.")], question="right knee MRI?", today=TODAY)
    lines = escalation([judged("NOT DOCUMENTED")], pair, True, 0.6, True)
    assert [line.split(":")[0].split(" is ")[0] for line in lines] == [
        REVIEW, "Contradiction", "Insufficient Documentation", "Confidence", "The result",
    ]  # fmt: skip


def test_sentences_keep_their_place_and_a_wrapped_line_is_one_sentence():
    text = "HPI\nPain in the knee for\nnine months. Seen by Dr. Adams, e.g. in May.\n\n- BMI 33.1\n- A1c 7.1"
    read = document(text)
    read["pages"] = [page(text, 1, [("HPI", "HPI"), ("Results", "- BMI")])]
    found = sentences_of([read], TODAY)
    assert [(one.text, one.section) for one in found] == [
        ("HPI", "HPI"), ("Pain in the knee for nine months.", "HPI"), ("Seen by Dr. Adams, e.g. in May.", "HPI"),
        ("BMI 33.1", "Results"), ("A1c 7.1", "Results"),
    ]  # fmt: skip
    assert all(" ".join(text[one.start : one.end].split()) == one.text for one in found)
