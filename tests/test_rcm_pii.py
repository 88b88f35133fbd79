"""What identifies a person is hidden and comes back; drugs, eponyms, visits stay; nothing asks the network."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.rcm_pii import measure, rows
from docgemma.errors import ConfigError
from docgemma.paths import data_file
from docgemma.rcm import pii
from docgemma.rcm.pii import Scrubber

NOTE = """Patient: Maria Gonzalez   DOB: 03/14/1962   MRN: MG-20417   Member ID: NHP-20417-01
Dear Dr. Okafor, I saw Ms. Gonzalez, a 63-year-old teacher, on 02/03/2025 at Mercy General Hospital.
She lives at 1250 Maple Street, Springfield, IL 62704; phone (555) 010-4432; m.gonzalez@example.org; SSN 987-65-4329.
Kellgren-Lawrence grade 4. Gonzalez's metformin 500 mg twice daily goes on; HbA1c 7.1 % in 2024.
Signed, Steven Halloran, MD"""


def test_a_note_loses_what_identifies_and_keeps_what_matters() -> None:
    hidden = Scrubber().scrub(NOTE)
    for gone in (
        "Maria",
        "onzalez",
        "1962",
        "20417",
        "Okafor",
        "Maple",
        "62704",
        "4432",
        "example.org",
        "4329",
        "Steven",
    ):
        assert gone not in hidden
    stays = (
        "Dr. <PERSON_2>|Ms. <PERSON_1>|63-year-old|02/03/2025|Mercy General Hospital|Kellgren-Lawrence grade 4|, MD|"
        "<PERSON_1>'s metformin 500 mg twice daily|HbA1c 7.1 % in 2024"
    )
    for kept in stays.split("|"):
        assert kept in hidden
    for label in ("DATE_OF_BIRTH", "MRN", "MEMBER_ID", "ADDRESS", "PHONE", "EMAIL", "SSN"):
        assert hidden.count(f"<{label}_1>") == 1


def test_an_answer_of_a_model_gets_the_fullest_name() -> None:
    session = Scrubber()
    session.scrub("Ms. Gonzalez called. Maria Gonzalez, DOB 03/14/1962, MRN MG-20417, asks about her knee.")
    said = "<PERSON_1> (<DATE_OF_BIRTH_1>, <MRN_1>) meets 3 of 5 criteria."
    assert session.restore(said) == "Maria Gonzalez (03/14/1962, MG-20417) meets 3 of 5 criteria."


@pytest.mark.parametrize(
    "again",
    ["GONZALEZ, MARIA came.", "Gonzalez, Maria came.", "Mrs. Gonzalez came.", "Gonzalez's knee hurts.",
     "is gonzalez better", "maria gonzalez came", "M. Gonzalez came.", "María González came."],
)  # fmt: skip
def test_a_person_keeps_one_placeholder_however_written(again: str) -> None:
    session = Scrubber()
    session.scrub("Patient: Maria Gonzalez, seen with Dr. Halloran.")
    hidden = session.scrub(again)
    assert "<PERSON_1>" in hidden and "onzalez" not in hidden.casefold()
    assert "Maria Gonzalez" in session.restore(hidden)


def test_a_surname_that_two_people_bear_is_given_to_neither() -> None:
    session = Scrubber()
    hidden = session.scrub("Maria Gonzalez came with Carlos Gonzalez. Mr. Gonzalez asked about the bill.")
    assert hidden.startswith("<PERSON_1> came with <PERSON_2>. Mr. <PERSON_3> asked")
    assert session.restore("<PERSON_3>") == "Gonzalez"


@pytest.mark.parametrize("written", ["DOB 3/14/62", "born March 14, 1962", "date of birth is the 14th of March 1962"])
def test_a_birth_date_is_one_value_in_every_form(written: str) -> None:
    session = Scrubber()
    session.known(births=["1962-03-14"])
    hidden = session.scrub(f"Her record says {written}, visit 03/14/2025.")
    assert "<DATE_OF_BIRTH_1>" in hidden and "62" not in hidden and "03/14/2025" in hidden


def test_what_is_known_is_caught_wherever_it_stands() -> None:
    session = Scrubber()
    session.known(names=["Renee Boudreaux", "Grace Young"], ids=["rb-77 310"], births=["1977-08-30"])
    hidden = session.scrub(
        "boudreaux, see RB77310 and rb-77-310; 08/30/1977. Young has a young sister; grace young too."
    )
    shown = "<PERSON_1>, see <ID_1> and <ID_1>; <DATE_OF_BIRTH_1>. <PERSON_2> has a young sister; <PERSON_2> too."
    assert hidden == shown


def test_two_known_people_side_by_side_stay_two() -> None:
    session = Scrubber()
    session.known(names=["Maria Gonzalez", "Aisha Rahman"])
    assert session.scrub("Maria Gonzalez, Aisha Rahman") == "<PERSON_1>, <PERSON_2>"


def test_an_id_without_its_word_is_known_the_second_time() -> None:
    session = Scrubber()
    assert session.scrub("MRN: 7731022.") == "MRN: <MRN_1>."
    assert session.scrub("7731022 was seen; 17731022 was not.") == "<MRN_1> was seen; 17731022 was not."


def test_an_eponym_stays_even_where_a_patient_has_the_name() -> None:
    session = Scrubber()
    session.known(names=["James Wilson", "Ann Bell"])
    hidden = session.scrub("Wilson disease and Bell's palsy: not in Wilson. Dr. Graves saw Bell for Graves' disease.")
    assert hidden.startswith("Wilson disease and Bell's palsy: not in <PERSON_1>. ")
    assert hidden.endswith("Dr. <PERSON_3> saw <PERSON_2> for Graves' disease.")


def test_a_hundred_drugs_survive() -> None:
    lines = data_file("knowledge", "drugs.jsonl").read_text("utf-8").splitlines()[1:]
    drugs = [json.loads(line) for line in lines]
    names = [row["brand_names"][0] for row in drugs if row["brand_names"]][:60] + [row["name"] for row in drugs][-40:]
    assert len(set(names)) == 100
    session = Scrubber()
    for name in names:
        shown = name[0].upper() + name[1:]
        for text in (
            f"{shown} 10 mg daily was started.",
            f"She failed {shown}. Patient takes {shown.lower()} and {shown}.",
        ):
            assert session.scrub(text) == text


def test_a_placeholder_of_another_session_stays_as_it_is() -> None:
    one, other = Scrubber(), Scrubber()
    hidden = one.scrub("Aisha Rahman and Leonard Abernathy, MRN AR-55102")
    other.known(names=["Gregory Maddox"])
    assert other.restore(hidden).endswith("<PERSON_2>, MRN <MRN_1>")
    assert Scrubber().restore(hidden) == hidden


def test_the_floor_on_the_labelled_lines_that_it_was_made_with() -> None:
    figures, _ = measure("dev")
    labels = figures["labels"]
    assert labels["PERSON"]["recall"]["value"] >= 0.95 and labels["PERSON"]["precision"]["value"] >= 0.95
    for label in ("MRN", "MEMBER_ID", "DATE_OF_BIRTH", "SSN", "EMAIL", "PHONE", "ADDRESS"):
        assert labels[label]["recall"]["value"] >= 0.98, label


def test_the_labelled_lines_are_enough_and_right() -> None:
    lines = [*rows("dev"), *rows("test")]
    assert len(lines) >= 240 and len({row["text"] for row in lines}) == len(lines)
    for row in lines:
        for span in row["spans"]:
            value = row["text"][span["start"] : span["end"]]
            assert value and value == value.strip()


def test_no_text_and_a_huge_text() -> None:
    session = Scrubber()
    assert session.scrub("") == "" and session.scrub(" \n") == " \n"
    line = "Maria Gonzalez (MRN MG-20417) took metformin 500 mg and walked two blocks on 02/03/2025. "
    text = line * (200_000 // len(line)) + "x" * 10_000
    start = time.process_time()
    hidden = session.scrub(text)
    assert "onzalez" not in hidden and "20417" not in hidden and session.restore(hidden) == text
    assert time.process_time() - start < 120


def test_nothing_asks_the_network(tmp_path: Path) -> None:
    """In a process of its own, from the first import on, with a home that holds no cache of public suffixes."""
    program = """
import socket
def refused(*args, **kwargs): raise AssertionError("the network was asked")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = socket.create_connection = refused
from docgemma.rcm.pii import Scrubber
print(Scrubber().scrub("Maria Gonzalez, a@b.example.com, https://www.example.co.uk/x, MRN 0071-3382"))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(Path(pii.__file__).parents[2])},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout == "<PERSON_1>, <EMAIL_1>, https://www.example.co.uk/x, MRN <MRN_1>\n"


def test_without_a_model_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pii, "MODELS", ("no_such_model",))
    pii._engine.cache_clear()
    pii._words.cache_clear()
    with pytest.raises(ConfigError) as caught:
        Scrubber().scrub("Maria Gonzalez")
    assert "pip install" in caught.value.hint and "Gonzalez" not in caught.value.line()
