"""How strangers write: what the sealed rounds showed to be misread (data/rcm/fresh), each as a small case."""

from datetime import date
from typing import Any

import pytest

from docgemma.paths import data_file
from docgemma.rcm.criteria import _either, judge
from docgemma.rcm.extract import policy_index
from docgemma.rcm.header import identities_of
from docgemma.rcm.measures import holds
from docgemma.rcm.patterns import Finding
from docgemma.rcm.people import _means, settle, with_name
from docgemma.rcm.policy_files import load_policies
from docgemma.rcm.records import Identity, Person
from docgemma.rcm.scope import Named, Wanted, intent_of, names_service, nearest, payer_in
from docgemma.rcm.sentences import sentences_of
from docgemma.rcm.sides import sides
from docgemma.reading.reader import load_reader
from docgemma.text.births import read_births
from tests.rcm_documents import document

TODAY = date(2026, 11, 23)
NOBODY: Any = None  # a record store that is not asked
PAIN = {"name": ["pain"], "unit": "week", "at_least": 6}
THERAPY = {"name": ["pt"], "unit": "week", "at_least": 6}


@pytest.mark.parametrize(
    ("line", "name", "born"),
    [
        ("Frazier, Odell T.  //  born 07/08/1969  //  HBT ID 8841", "Odell T. Frazier", "1969-07-08"),
        ("Pt Bernice Halvorsen  DOB 4-22-1961  PCC# 70-415", "Bernice Halvorsen", "1961-04-22"),
        ("His mother, Ada Frazier, born 1931, had it too.", "", ""),
        ("LINDQVIST, PATRICIA A.\nDOB 12/19/1962 | Harborview Benefit Trust", "PATRICIA A. LINDQVIST", "1962-12-19"),
        ("NORTH SHORE HIP AND KNEE\nDOB 12/19/1962 | Harborview Benefit Trust", "", "1962-12-19"),
    ],
)
def test_header_lines_without_labels(line, name, born):
    told = identities_of(document(line))[0]
    assert (told["name"], told["birth_date"]) == (name, born)


def paper(name: str, born: str) -> Identity:
    return Identity(name=name, birth_date=born)


def test_a_document_that_gives_but_another_birth_date_is_not_judged_as_the_patients():
    kim = Person(id="k", name="Grace Kim", birth_date="1967-03-12", label="Grace Kim, female, born 1967-03-12")
    named = [Named(said="Grace Kim", candidates=[kim])]
    asked = settle(named, [paper("", "1962-12-19")], NOBODY, None)
    assert asked.person is None and asked.options == (kim,)
    assert asked.question.startswith("The document speaks of a patient born 1962-12-19, the record of Grace Kim")
    assert settle(named, [paper("", "1967-03-12")], NOBODY, None).person == kim


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Begay - entresto PA northgate pls review, dr wants it started this wk", "POLICY_CHECK"),
        ("I forgot the password for the Northgate portal, what is it", "OUT_OF_SCOPE"),  # a payer's name is no ticket
    ],
)
def test_what_names_a_payer_is_refused_only_where_that_is_plain(question, intent):
    assert nearest(question, load_reader(data_file("edge", "reader.npz"))) == intent


@pytest.mark.parametrize(("terms", "reader"), [("MET", "NOT MET"), ("NOT MET", "MET")])
def test_what_one_shows_and_the_other_denies_is_left_to_a_person(terms, reader):
    said = {"MET": sentences_of([document("Has never used tobacco.")], TODAY),
            "NOT MET": sentences_of([document("Smokes half a pack a day.")], TODAY)}  # fmt: skip
    told = _either(Finding(terms, "", tuple(said[terms])), Finding(reader, "", tuple(said[reader])))
    assert told.verdict == "NOT DOCUMENTED"
    assert ([*told.quotes], [*told.against]) == (said["MET"], said["NOT MET"]), "both are cited"


@pytest.mark.parametrize(
    ("said", "born", "same"),
    [
        ("osterman, born 1963-05-11", "1963-05-11", True),
        ("northgate, H, born 1963-05-11", "1963-05-11", True),  # what was read as the name is but the payer
        ("osterman, born 1963-05-12", "1963-05-11", False),
        ("Maria Osterman, born 1963-05-11", "1963-05-11", False),
        ("Ostermann", "1963-05-11", False),
    ],
)
def test_whom_a_question_means_with_a_birth_date(said, born, same):
    assert _means(said, paper("Fitzgerald Osterman", born)) is same


def test_a_coming_appointment_is_nobodys_birth_date():
    assert read_births("surgery 1/12/27", TODAY) == []
    assert read_births("dob 1/12/27", TODAY)


def test_a_payer_is_known_by_its_whole_name_in_the_first_lines_and_by_the_letters_of_its_policies():
    assert payer_in("PCC# 70-41 (Prairie Community Care)") == "Prairie Community Care"
    assert payer_in("Seen in the prairie.") == ""
    assert payer_in("Cedar Mutual, formerly Northgate Health Plan") == ""


def test_a_letter_before_an_abbreviated_operation_is_its_side():
    assert sides("dob 8/14/57, R TKA 27447") == {"right"}
    assert sides("on 2 L foot pump") == frozenset()


@pytest.mark.parametrize(
    ("text", "measure", "wanted"),
    [
        ("PT at Riverbend 4/6-6/12/26, a little looser.", THERAPY, "yes"),
        ("PT at Summit 11/2 to 11/9/26.", THERAPY, "no"),
        ("PT 12/15-2/10/26 at the gym.", THERAPY, "yes"),  # over the turn of the year
        ("Pain since 2023.", PAIN, "yes"),
        ("Pain since 2026.", PAIN, "unknown"),
        ("Pain since about summer 2025.", PAIN, "yes"),
        ("PT from Jan through Sept 2026: still 6/10.", THERAPY, "yes"),
        ("PT Nov-Feb 2026.", THERAPY, "yes"),
        ("PT in Sept 2025 and in May 2026.", THERAPY, "unknown"),
        ("Pain since early 2023.", PAIN, "yes"),
        ("The pain began in spring 2024 and has been there ever since.", PAIN, "yes"),
        ("The pain began in spring 2024.", PAIN, "unknown"),
        ("A 45-year-old man with chronic pain.", PAIN, "unknown"),
    ],
)
def test_durations_as_they_are_written(text, measure, wanted):
    assert holds(sentences_of([document(text)], TODAY)[0], measure, TODAY, anywhere=True) == wanted


@pytest.mark.parametrize(("old", "verdict"), [("2014", "MET"), ("2026", "NOT DOCUMENTED")])
def test_a_number_of_years_ago_is_not_the_one_of_now(old, verdict):
    note = document(f"HISTORY\nStudy of {old}: AHI 4/h.\nHome sleep test: AHI 22/h, mostly obstructive.")
    judged, _ = judge(load_policies()["PCC-SLEEP-001"], [note], None, today=TODAY)
    assert {one["id"]: one["verdict"] for one in judged}["PCC-SLEEP-001.3"] == verdict


def test_the_columns_of_a_first_line_name_the_patient_whom_the_question_means():
    note = document("Surgery clinic\nDenise HOLLOWAY    10/14/1980    Cedar Mutual\nHeavy since 2010.")
    found = with_name(identities_of(note), note, ["Denise Holloway, born 1980-10-14"])[0]
    assert (found["name"], found["birth_date"]) == ("Denise Holloway", "1980-10-14")
    assert with_name(identities_of(note), note, ["Denise Hollis, born 1980-10-14"])[0]["name"] == ""


@pytest.mark.parametrize(
    "head",
    ["Patient: Ottilie Brandvold     DOB: 06/22/1955     Seen: 11/12/2026", "James WILSON  DOB 02/11/1949  11/12/2026"],
)
def test_the_visit_is_of_the_other_day_beside_the_birth_date(head):
    assert {one.day for one in sentences_of([document(f"{head}\n\nStent in place.")], TODAY)} >= {"2026-11-12"}


@pytest.mark.parametrize(("father", "verdict"), [("MTC", "NOT DOCUMENTED"), ("hypertension", "MET")])
def test_what_a_relative_had_is_not_undone_by_a_later_visit(father, verdict):
    first = f"VISIT OF AUGUST 19, 2026\nFAMILY HISTORY\nHer father had {father}, was operated in 2011."
    second = "VISIT OF NOVEMBER 16, 2026\nHISTORY\nNo family history of medullary thyroid carcinoma."
    note = document(first, second)
    note["pages"][0]["sections"] = [{"title": "FAMILY HISTORY", "start": 25, "end": len(first)}]
    judged, _ = judge(load_policies()["HBT-DRUG-003"], [note], None, today=TODAY)
    assert {one["id"]: one["verdict"] for one in judged}["HBT-DRUG-003.5"] == verdict


@pytest.mark.parametrize(
    ("table", "read"),
    [
        ("Eye\tWithout glasses\tBest corrected\nRight\t20/200\t20/70", "Right 20/200 Best corrected 20/70"),
        ("BP\tHR\tBMI\n134/78\t70\t33.7", "BP 134/78 HR 70 BMI 33.7"),
        ("Test\t10/02/2026\t11/16/2026\nPotassium\t5.4\t5.1", "Potassium 5.1 5.4"),  # the latest first
        ("Knee\tEffusion\tno\nRight\t20\t30", "Right 20 30"),  # a row of results titles nothing
        ("CRP\t2 mg/L\nUA\tneg", "UA neg"),
    ],
)
def test_the_rows_of_a_table_are_read_with_their_titles(table, read):
    assert [one for one in sentences_of([document(f"Seen.\n\n{table}\n")], TODAY) if one.read.endswith(read)]


@pytest.mark.parametrize(("last", "verdict"), [("09/06/2024", "MET"), ("05/06/2026", "NOT DOCUMENTED")])
def test_of_what_has_to_be_long_ago_the_latest_counts(last, verdict):
    note = document(f"HISTORY\nEchocardiogram on 04/22/2025 showed EF 60 %.\n\nEchocardiogram on {last}: EF 62 %.")
    judged, _ = judge(load_policies()["NHP-CARD-001"], [note], None, today=TODAY)
    assert {one["id"]: one["verdict"] for one in judged}["NHP-CARD-001.2"] == verdict


def test_a_row_is_quoted_as_it_stands():
    note = document("Seen 11/12/2026.\n\nTest\t03/02/2026\t11/10/2026\nHbA1c %\t7.9\t6.7\n")
    judged, claims = judge(load_policies()["HBT-DRUG-003"], [note], None, today=TODAY)
    assert {one["id"]: one["verdict"] for one in judged}["HBT-DRUG-003.2"] == "NOT MET"
    assert all(one["verified"] for one in claims if one["criterion"] == "HBT-DRUG-003.2")


def test_a_drug_is_found_whatever_pt_stands_beside_it():
    assert policy_index("").search("Northgate Health Plan", "pt hfref, cards wants entresto")["id"] == "NHP-DRUG-002"
    assert policy_index("").search("Prairie Community Care", "pt needs more PT visits")["id"] == "PCC-REHAB-001"


def test_the_visit_is_of_the_day_with_which_a_first_line_begins():
    note = document("KIM, Grace    DOB 03/12/1967\n\n11/10/2026    S. Marchetti, PA-C\nHere for a diabetes visit.")
    assert {one.day for one in sentences_of([note], TODAY)} >= {"2026-11-10"}


@pytest.mark.parametrize(("born", "verdict"), [("09/03/1971", "MET"), ("09/03/2012", "NOT MET")])
def test_the_birth_date_of_a_header_tells_the_age(born, verdict):
    note = document(f"Patient: Maria Garcia   DOB: {born}\nSeen for diabetes.")
    judged, _ = judge(load_policies()["HBT-DRUG-003"], [note], None, today=TODAY)
    assert {one["id"]: one["verdict"] for one in judged}["HBT-DRUG-003.4"] == verdict


def test_what_a_plan_shows_passes_the_audit_where_a_plan_counts():
    note = document("PLAN\n2x/wk x 6 wk = 12 more visits, 11/30/2026 through 01/08/2027.")
    note["pages"][0]["sections"][0]["title"] = "Plan"
    judged, claims = judge(load_policies()["PCC-REHAB-001"], [note], None, today=TODAY)
    assert {one["id"]: one["verdict"] for one in judged}["PCC-REHAB-001.5"] == "MET"
    assert all(one["verified"] for one in claims if one.get("criterion") == "PCC-REHAB-001.5")


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("does her right knee meet the criteria? we would like to send the request today", False),
        ("is botox covered?", True),
        ("27447, ok?", True),
        ("Dr. Keane wants to get something authorized for her right knee. Does she meet the criteria?", False),
    ],
)
def test_whether_a_question_names_a_service(question, named):
    want = Wanted(patients=[], payer="", drugs=[], lists=[], side="")
    assert names_service(question, want, load_reader(data_file("edge", "reader.npz"))) is named


class Edge:
    profile = "edge"


@pytest.mark.parametrize(
    ("question", "refused"),
    [
        ("which vacation policy applies to new hires", True),
        ("write a reply to the bad review on our page", True),
        ("why was the pt hospitalized in february", False),
        ("how do I prevent the denial", False),
        ("is warfarin safe with her ibuprofen", False),
    ],
)
def test_office_life_is_refused_and_the_clinic_is_not(question, refused):
    reader = load_reader(data_file("edge", "reader.npz"))
    assert (intent_of(question, Edge(), reader) == "OUT_OF_SCOPE") is refused  # type: ignore[arg-type]


def verdict_of(criterion: str, *pages: str, section: str = "") -> tuple[str, list[str]]:
    """The verdict of one criterion, and what is quoted against it."""
    note = document(*pages)
    for page in note["pages"]:
        for part in page["sections"]:
            part["title"] = section or part["title"]
    judged, claims = judge(load_policies()[criterion.rpartition(".")[0]], [note], None, today=TODAY)
    against = [
        one["quote"] for one in claims if one.get("criterion") == criterion and one["claim"].startswith("Against")
    ]
    return next(one["verdict"] for one in judged if one["id"] == criterion), against


OPEN = "NOT DOCUMENTED"
VISIT = "Jo Ray   DOB 12/03/1961\nVisit 11/12/2026\nNo history of angioedema. Never on an ACE inhibitor.\n"
REACTION = "enalapril\tangioedema, given epinephrine\t04/22/2017"


@pytest.mark.parametrize(
    "page",
    [
        f"PHARMACY PROFILE\nRAY JO 12/03/1961\n\nAgent\tReaction\tEntered\n{REACTION}\n",
        f"Visit 04/22/2017\n\nAgent\tReaction\tEntered\n{REACTION}\n",
        "Visit 03/01/2019\nReactions: lisinopril, tongue swelling.\n",
        "Visit 11/20/2026\nNo known drug allergies other than lisinopril (angioedema).\n",
        "Visit 03/01/2019\nPossible angioedema on ramipril.\n",
    ],
)
def test_a_denied_history_is_contradictory_where_any_page_affirms_it(page):
    said, against = verdict_of("NHP-DRUG-002.5", VISIT, page)
    assert said == "NOT DOCUMENTED" and len(against) == 1


def test_a_drug_in_a_table_of_reactions_is_not_a_drug_that_is_given():
    page = f"Visit 11/13/2026\n\nAgent\tReaction\tEntered\n{REACTION}\n"
    assert verdict_of("NHP-DRUG-002.7", VISIT, page)[0] == "MET"


@pytest.mark.parametrize(
    ("criterion", "denied", "before", "day", "said"),
    [
        ("NHP-ORTH-001.6", "No active infection.", "Cellulitis of the shin.", "11/10/2026", OPEN),
        ("NHP-ORTH-001.6", "No active infection.", "Cellulitis of the shin.", "03/10/2026", "MET"),
        ("NHP-SPINE-001.4", "Does not use tobacco.", "Uses tobacco daily.", "11/01/2026", OPEN),
        ("NHP-SPINE-001.4", "Cigarettes: quit 2019.", "Goes through a tin of snuff a week.", "11/12/2026", OPEN),
        ("HBT-DRUG-003.5", "No medullary thyroid cancer.", "Medullary thyroid cancer in 2011.", "05/02/2012", OPEN),
    ],
)  # fmt: skip
def test_how_long_a_mention_stands_against_a_later_denial(criterion, denied, before, day, said):
    pages = f"Visit 11/12/2026\n{denied}\n", f"Visit {day}\n{before}\n"
    assert verdict_of(criterion, *pages)[0] == verdict_of(criterion, *reversed(pages))[0] == said


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("AHI overall (4 %)\t9.8 /h\nAHI supine\t22.4 /h", "MET"),
        ("AHI supine\t22.4 /h\nREM AHI\t31 /h", "NOT DOCUMENTED"),
        ("AHI overall (4 %)\t3.1 /h\nAHI supine\t22.4 /h", "NOT MET"),
        ("AHI overall (3 %)\t19 /h\nSupine AHI\t12.0 /h", "MET"),
    ],
)
def test_an_index_of_a_part_of_the_night_is_not_the_index(rows, said):
    pages = "Visit 09/14/2026\nEssential hypertension.\n", f"HOME SLEEP TEST 10/02/2026\n\nParameter\tValue\n{rows}\n"
    assert verdict_of("PCC-SLEEP-001.3", *pages)[0] == said


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("First night 12/03/2026.\nReview of download in clinic 01/21/2027.", "MET"),
        ("First night 12/03/2026.\nReview of download in clinic 12/17/2026.", "NOT MET"),
        ("Review of download in clinic 01/21/2027.", "NOT DOCUMENTED"),
        (
            "First night 12/03/2026.\nFirst night 01/15/2027.\nReview of download in clinic 01/21/2027.",
            "NOT DOCUMENTED",
        ),
        ("Back here 6 to 8 weeks after first night on the machine, we look at hours of use.", "MET"),
    ],
)
def test_a_review_counts_from_the_day_that_therapy_is_to_begin(plan, said):
    assert verdict_of("PCC-SLEEP-001.5", f"Visit 11/18/2026\n{plan}\n")[0] == said


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("PT from the 4th of May through the 29th of June 2026", "yes"),
        ("PT 13 July to 7 September", "yes"),
        ("PT from March through May", "yes"),
        ("PT 1/2026-4/2026", "yes"),
        ("PT for sixteen weeks", "yes"),
        ("PT from the 4th through the 29th of June 2026", "unknown"),
        ("PT from 4 May to 20 May", "no"),
        ("PT in May and July", "unknown"),
    ],
)
def test_courses_between_days_that_share_a_year_or_tell_none(line, answer):
    (said,) = sentences_of([document(line)], TODAY)
    assert holds(said, THERAPY, TODAY) == answer


def test_ages_in_words_and_months_that_may_be_their_last_day():
    (old,) = sentences_of([document("She is a sixty-one-year-old cook.")], TODAY)
    assert holds(old, {"name": ["year old"], "unit": "year", "at_least": 61}, TODAY) == "yes"
    (shot,) = sentences_of([document("Injection in August 2026")], TODAY)
    assert holds(shot, {"name": ["injection"], "unit": "day", "at_least": 90, "ago": True}, TODAY) == "unknown"


def test_lines_that_go_on_and_sentences_that_end_with_a_letter():
    long = "Examination of the patient today in the clinic room shows in the end"
    told = [
        one.text for one in sentences_of([document(f"{long} that\nthere is no\nICD shock. Vitamin D. Her knee hurts.")])
    ]
    assert told[-2:] == ["Vitamin D.", "Her knee hurts."] and told[0].endswith("there is no ICD shock.")


def test_a_relative_is_spoken_of_behind_and_was():
    text = "Her mother had sciatica and was operated on for weakness of the foot."
    said, _ = verdict_of("CMU-IMG-002.3", f"{text}\nStraight leg raise negative.\n")
    assert said == "NOT MET"


def test_columns_of_a_side_are_told_of_every_cell():
    table = "Finding\tRight\tLeft\nStraight leg raise\tnegative\tpositive at 40 degrees\n"
    said = sentences_of([document(table)], TODAY)
    assert said[-1].read == "Straight leg raise Right negative Left positive at 40 degrees"
