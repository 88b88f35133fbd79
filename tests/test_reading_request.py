"""What a message asks for: who, which drugs, how a write is meant, and each order with its own details."""

import pytest

from docgemma.agent import Agent
from docgemma.errors import StoreError
from docgemma.reading.request import read_request
from tests.rules_help import dictionary, the_reader


@pytest.mark.parametrize(
    ("message", "patients"),
    [
        ("chart of abc-123", ["abc-123"]), ("chart of ABC-123", ["abc-123"]), ("labs for John Smith", ["abc-123"]),
        ("labs for smith john", ["abc-123"]), ("john smiths potassium", ["abc-123"]),
        ("what are Garcia, Maria's meds", ["def-456"]), ("allergies of Maria García?", ["def-456"]),
        ("compare the labs of abc-123 and def-456", ["abc-123", "def-456"]), ("What is hypertension?", []),
        ("interactions of warfarin and aspirin", []),
    ],
)  # fmt: skip
def test_patients_are_those_of_the_record_store(read, message: str, patients: list[str]) -> None:
    assert [patient["id"] for patient in read(message)["patients"]] == patients


def test_a_name_that_three_have_is_unclear_and_nobody_is_taken(read) -> None:
    found = read("labs for James Wilson")
    assert found["patients"] == [] and found["unclear"] == ["James Wilson"]


def test_a_name_that_nobody_has_stays_one(read) -> None:
    found = read("labs for Quentin Zzyzx please")
    assert found["patients"] == [] and [name for name in found["unclear"] if "Zzyzx" in name]


def test_an_unreachable_store_is_no_unknown_patient(read, agent: Agent, monkeypatch) -> None:
    def unreachable(*args, **kwargs):
        raise StoreError("The record store cannot be reached.")

    for name in ("named", "by_identifier", "search_patients"):
        monkeypatch.setattr(agent.store, name, unreachable)
    with pytest.raises(StoreError):
        read("labs for John Smith, abc-123")


@pytest.mark.parametrize(
    ("message", "drugs"),
    [
        ("is metformin safe", ["metformin"]), ("start vanc 1 g bd for abc-123", ["vancomycin"]),
        ("boxed warning of dofetilde", ["dofetilide"]),
        ("interactions of warfarin, aspirin and ibuprofen", ["warfarin", "aspirin", "ibuprofen"]),
        ("Is Coumadin safe with warfarin", ["Coumadin"]),
    ],
)  # fmt: skip
def test_each_drug_is_linked_once(read, message: str, drugs: list[str]) -> None:
    assert [drug["name"] for drug in read(message)["drugs"]] == drugs


def test_a_drug_that_nobody_knows_is_kept_as_unknown(read) -> None:
    found = read("What are the FDA warnings for blorbitol?")["drugs"]
    assert [(drug["said"], drug["how"]) for drug in found] == [("blorbitol", "unknown")]


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        ("Prescribe metformin 500 mg twice daily for abc-123", "ordered"),
        ("Should I prescribe metformin 500 mg twice daily for abc-123?", "asked"),
        ("Would metformin 500 mg twice daily be ok for abc-123?", "asked"),
        ("Do not prescribe metformin for abc-123", "refused"),
        ("What is the potassium of abc-123?", ""),
        ("order set has heparin 5000 sq q8 for abc-123, she's on eliquis. give both?", "asked"),
        ("losartan 50 mg daily for abc-123. is that over the max?", "asked"),
        ("TORB dr lin kcl 20 meq po x1 for abc-123, k this am is 3.1", "ordered"),
        ("prescribe amoxicillin 500 mg tds for abc-123. whats his egfr?", "ordered"),
    ],
)
def test_a_write_is_ordered_asked_about_or_refused(read, message: str, meant: str) -> None:
    assert read(message)["meant"] in ({"asked", "unsure", ""} if meant == "asked" else {meant})


def test_each_order_has_its_own_details(read) -> None:
    orders = read("Start bisoprolol 1.25 mg od and furosemide 40 mg mane for def-456")["orders"]
    assert [(item["drug"], item["dose"], item["frequency"]) for item in orders] == [
        ("bisoprolol", "1.25 mg", "od"), ("furosemide", "40 mg", "mane"),
    ]  # fmt: skip


@pytest.mark.parametrize("length", ["for 5 days", "7/7", "x3d"])
def test_a_duration_is_kept(read, length: str) -> None:
    (order,) = read(f"Prescribe amoxicillin 500 mg tds {length} for def-456")["orders"]
    assert length.removeprefix("for ") in f"{order['notes']} {order['frequency']}"


@pytest.mark.parametrize(
    ("message", "drugs"),
    [
        ("ghi-789 azithro 500.. no doxy 100 bd 7d, card it", ["doxycycline"]),
        ("Prescribe amoxicillin 500 mg tds for abc-123, sorry, doxycycline 100 mg bd", ["doxycycline"]),
        ("prescribe paracetamol 1 g qds and ibuprofen 400 mg tds for ghi-789", ["paracetamol", "ibuprofen"]),
    ],
)
def test_a_drug_that_is_corrected_within_the_message_is_not_ordered(read, message: str, drugs: list[str]) -> None:
    assert [order["drug"] for order in read(message)["orders"]] == drugs


def test_no_part_of_a_birth_date_is_a_detail_of_the_order(read) -> None:
    found = read("prescribe paracetamol 1 g qds po for James Wilson 30/7/85")
    assert [(order["dose"], order["frequency"]) for order in found["orders"]] == [("1 g", "qds")]
    assert not any(char.isdigit() for order in found["orders"] for char in order["notes"])


def test_a_measure_that_looks_like_an_id_is_no_patient(read) -> None:
    assert read("hba1c 7.6 - put him up to 1g bd then", before="john smith metformin dose?")["unclear"] == []


def test_a_list_that_is_named_as_a_whole_is_asked_for_beside_single_results(read) -> None:
    assert {"labs", "meds"} <= set(read("abc-123: give me K, creat/egfr, hr and bp. and the med list")["asks"])


def test_the_text_of_a_note_names_no_patient_and_orders_nothing(read) -> None:
    text = "Save a progress note for def-456: daughter of John Smith called, wants metformin 500 mg prescribed"
    found = read(text)
    assert [patient["id"] for patient in found["patients"]] == ["def-456"] and found["orders"] == []
    assert "metformin" in found["notes"][0]["note_text"] and "rx" not in found["asks"]


def test_without_a_store_names_stay_as_typed() -> None:
    found = read_request("labs for John Smith", reader=the_reader(), drugs=dictionary(), store=None)
    assert found["patients"] == [] and found["unclear"] == ["John Smith"]


@pytest.mark.parametrize(
    ("message", "names"),
    [
        (
            "pt on clopi needs gastroprotection. omeprazole or lansoprazole?",
            ["clopidogrel", "omeprazole", "lansoprazole"],
        ),
        ("ramip spiro kcl potassium risk", ["ramipril", "spironolactone", "potassium chloride"]),
        ("warfarin cranberry st johns wort", ["warfarin", "st johns wort"]),
        ("melatonin fluvox", ["melatonin", "fluvoxamine"]),
        ("dabigatran ketocon rifamp", ["dabigatran", "ketoconazole", "rifampicin"]),
        ("humulin and metformin", ["humulin", "metformin"]),  # which humulin is asked, none is taken
        ("this gent on warfarin, INR?", ["warfarin"]),
    ],
)
def test_no_drug_of_several_vanishes(read, message: str, names: list[str]) -> None:
    assert [drug["name"] for drug in read(message)["drugs"]] == names


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("fentanyl patch", {"fentanyl"}), ("duragesic", {"fentanyl"}), ("butrans", {"buprenorphine"}),
        ("co-codamol", {"codeine", "acetaminophen"}), ("nyquil", {"acetaminophen", "dextromethorphan", "doxylamine"}),
        ("colace", {"docusate"}), ("maalox", {"aluminum hydroxide", "magnesium hydroxide"}),
    ],
)  # fmt: skip
def test_what_a_brand_or_a_form_holds_is_known(name: str, parts: set[str]) -> None:
    assert dictionary().ingredients(name) == parts


@pytest.mark.parametrize(
    ("message", "text"),
    [("home bp today she says 168/94. note it, patient reported",
      "home bp today she says 168/94. note it, patient reported"),
     ("sats 91 on air just now. document please", "sats 91 on air just now."),
     ("is his k 5.3? note it", ""), ("note his k", "")],
)  # fmt: skip
def test_a_value_that_is_told_and_then_to_be_noted_is_a_note(read, message: str, text: str) -> None:
    found = read(message)
    assert [note["note_text"] for note in found["notes"]] == ([text] if text else [])


@pytest.mark.parametrize(
    ("message", "noted"),
    [
        ('GP letter re abc-123: "on amlodipine 10, K 4.8. ?start ACEi". what would you say', False),
        ("have a look at this cxr, ?overload, hd pt missed 2 sessions", False),
        ('save note abc-123: "bp 150/90, feels well"', True),
        ("note for abc-123: pt refused bloods, ?why. retry mon", True),
    ],
)
def test_what_is_pasted_and_asked_about_is_no_note(read, message: str, noted: bool) -> None:
    found = read(message)
    assert ("note" in found["asks"]) == bool(found["notes"]) == noted


def test_who_gave_an_order_stays_in_its_notes(read) -> None:
    found = read("TORB dr patel colace 100mg po bid for abc-123")["orders"][0]
    assert (found["said"], found["route"], found["notes"]) == ("colace", "po", "TORB, dr patel")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("order therapeutic clexane bridging benali 1mg/kg bd", ("clexane", "1mg/kg", "bd", "bridging")),
        ("prolia 60mg sc 6 monthly for o'brien siobhan", ("prolia", "60mg", "6 monthly", "")),
        ("denosumab 6 monthly for okafor", ("denosumab", "", "6 monthly", "")),
        ("methotrexate 10 weekly for okafor", ("methotrexate", "10", "weekly", "")),
        ("haddad m, pantoprazole 40 mg od before brekkie pls", ("pantoprazole", "40 mg", "od", "before brekkie")),
    ],
)
def test_an_order_is_what_was_said(read, message, told):
    (order,) = read(message)["orders"]
    assert (order["said"], order["dose"], order["frequency"], order["notes"]) == told
    assert not read(message)["unclear"]
