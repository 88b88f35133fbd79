"""The revenue-cycle agent end to end: edge model, real files, real stores; each failure mode of its design."""

import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from docgemma.ehr.open import open_store
from docgemma.errors import ModelError, StoreError
from docgemma.graphs import rcm
from docgemma.knowledge.sources import open_knowledge
from docgemma.llm import load_llm
from docgemma.llm.base import LLM, Completion, GenConfig, Prompt
from docgemma.memory import open_memory
from docgemma.paths import PACKAGE, data_file
from docgemma.rcm import scope
from docgemma.rcm.ledger import open_ledger
from docgemma.rcm.records import DISCLAIMER, NO_POLICY, REFUSAL, REVIEW
from docgemma.rcm.sentences import lists
from docgemma.reading.reader import load_reader
from docgemma.settings import Settings

NOTES = PACKAGE.parent / "data" / "rcm" / "notes"
GONZALEZ = NOTES / "gonzalez_knee_replacement.pdf"


@pytest.fixture
def parts(settings: Settings) -> Iterator[dict[str, Any]]:
    """What a turn needs, opened for real."""
    store, knowledge = open_store(settings), open_knowledge(settings)
    memory = open_memory(settings.db_location)
    yield {
        "settings": settings, "llm": load_llm("edge", settings), "store": store, "knowledge": knowledge,
        "reader": load_reader(data_file("edge", "reader.npz")), "memory": memory,
        "ledger": open_ledger(settings.db_location),
    }  # fmt: skip
    store.close()
    knowledge.close()
    memory.conn.close()


@pytest.fixture
def ask(parts: dict[str, Any]):
    """Ask a question; every answer keeps the promises that hold for all of them."""

    def asked(question: str, *pdf: Path, **options: Any) -> dict[str, Any]:
        told = rcm.run(question, pdf=pdf, **{**parts, **options})
        json.dumps(told)
        assert all(claim["verified"] and claim["quote"] for claim in told["claims"])
        if told["status"] == "answered":
            assert told["answer"].endswith(DISCLAIMER)
            assert len(told["ledger_ids"]) == len(told["claims"])
        else:
            assert not told["claims"] and not told["ledger_ids"]
        return told

    return asked


def make_pdf(path: Path, pages: Sequence[Sequence[str]]) -> Path:
    """A PDF with these lines on its pages."""
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path))
    for lines in pages:
        for at, line in enumerate(lines):
            canvas.drawString(60, 780 - 18 * at, line)
        canvas.showPage()
    canvas.save()
    return path


def header(name: str = "Maria Gonzalez", born: str = "03/14/1958", payer: str = "Northgate Health Plan") -> list[str]:
    return [f"Patient: {name}", f"DOB: {born}", f"Payer: {payer}"]


def test_held_out_questions_are_routed_as_they_are_labelled() -> None:
    reader, asked = load_reader(data_file("edge", "reader.npz")), lists("questions")["held"]
    held = [(question, intent) for intent in scope.INTENTS for question in asked[intent]]
    said = [(truth, scope.nearest(question, reader)) for question, truth in held]
    right = sum(truth == given for truth, given in said)
    refused = [truth for truth, given in said if given == "OUT_OF_SCOPE" != truth]
    assert right / len(said) >= 0.75, f"{right} of {len(said)}"
    assert len(refused) <= 2, refused  # of 140 questions that belong here


def test_the_stored_router_is_fitted_to_the_labelled_questions() -> None:
    fitted = runpy.run_path(str(data_file("rcm", "router.py")))["fitted"]()
    assert abs(fitted - scope._weights()).max() < 0.02, "run data/rcm/router.py"


def test_a_question_out_of_scope_is_refused_word_for_word_also_with_an_open_session(ask) -> None:
    thread = ask("What medications is Gregory Maddox on?")["thread"]
    refused = ask("Talk like a pirate", thread=thread)
    assert (refused["status"], refused["intent"], refused["answer"]) == ("refused", "OUT_OF_SCOPE", REFUSAL)
    assert refused["path"] == ["router", "output"] and refused["patient"] is None


class Down(LLM):
    name = "down"

    def complete(self, *args: Any, **options: Any) -> Completion:
        raise ModelError("No answer.")


def test_a_model_that_fails_never_refuses_a_question(ask) -> None:
    told = ask("What medications is Gregory Maddox on?", llm=Down())
    assert told["status"] == "answered" and told["intent"] == "GENERAL_CLINICAL"
    assert "ibuprofen" in told["answer"] and told["escalate"] and "down" in " ".join(told["why_escalate"])


class Recorder(LLM):
    """Answers every question the same way and keeps what it was asked."""

    name = "recorder"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def complete(self, prompt: Prompt, config: GenConfig, *, node: str, schema: Any = None, **_: Any) -> Completion:
        self.asked.append(prompt.user)
        routed = {"intent": "POLICY_CHECK"} if "intent" in schema.model_fields else None
        return Completion(json.dumps(routed or {"verdict": "unknown", "sentence": "none"}), 10, 5)


def test_a_language_model_never_sees_who_the_patient_is(ask) -> None:
    model = Recorder()
    told = ask("Does Maria Gonzalez meet her payer's criteria for a right knee replacement?", GONZALEZ, llm=model)
    assert told["status"] == "answered" and told["llm_calls"] == len(model.asked) >= 8
    for said in ("Gonzalez", "03/14/1958", "1958-03-14", "NHP-SAMPLE-1001"):
        assert not [text for text in model.asked if said in text]
    assert "Maria Gonzalez" in told["answer"]  # the answer is restored


def test_the_next_configured_model_answers_where_the_first_is_down(ask, parts, httpserver) -> None:
    delta = {"index": 0, "delta": {"content": '{"intent": "ALLERGIES"}'}, "finish_reason": "stop"}
    events = [{"choices": [delta]}, {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}]
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "second"}]})
    httpserver.expect_request("/v1/chat/completions").respond_with_data(
        "".join([*lines, "data: [DONE]\n\n"]), content_type="text/event-stream"
    )
    second = {"rcm_models": "server", "llm_url": httpserver.url_for("/v1"), "llm_name": "second"}
    told = ask(
        "What allergies does Aisha Rahman have?", llm=Down(), settings=parts["settings"].model_copy(update=second)
    )
    assert told["intent"] == "ALLERGIES" and told["llm_calls"] == 1
    assert "The model down did not answer" in " ".join(told["why_escalate"])


def test_an_answer_holds_what_its_intent_asks_for_and_nothing_else(ask) -> None:
    told = ask("What medications is Aisha Rahman on?")
    assert {claim["kind"] for claim in told["claims"]} == {"medication"}
    told = ask("Does she have any allergies?", thread=told["thread"])  # the pronoun is the thread's patient
    assert {claim["kind"] for claim in told["claims"]} == {"allergy"} and told["patient"]["name"] == "Aisha Rahman"


@pytest.mark.parametrize("noise", ["ok", "hello", "a" * 300, "'; DROP TABLE rcm_evidence_ledger; --"])
def test_noise_in_an_open_session_brings_no_chart(ask, noise: str) -> None:
    thread = ask("What medications is Gregory Maddox on?")["thread"]
    told = ask(noise, thread=thread)
    assert told["status"] != "answered" and "ibuprofen" not in told["answer"]
    assert ask("What are his meds?", thread=thread)["status"] == "answered"


def test_a_pronoun_that_does_not_fit_the_open_patient_is_asked_about(ask) -> None:
    thread = ask("What medications is Gregory Maddox on?")["thread"]
    told = ask("Does she have any allergies?", thread=thread)
    assert told["status"] == "needs_clarification" and "Gregory Maddox" in told["answer"]
    assert ask("yes", thread=thread)["patient"]["name"] == "Gregory Maddox"


def test_two_patients_of_one_name_are_asked_about_and_the_answer_is_resumed(ask) -> None:
    told = ask("What are James Wilson's meds?")
    assert told["status"] == "needs_clarification" and len(told["options"]) == 3
    assert ask("talk like a pirate", thread=told["thread"])["status"] == "refused"  # and it still waits
    told = ask("the one born 1985-07-30", thread=told["thread"])
    assert told["status"] == "answered" and told["patient"]["birth_date"] == "1985-07-30"
    assert told["intent"] == "MEDICATIONS" and "sertraline" in told["answer"]


def test_a_documents_birth_date_tells_namesakes_apart_and_its_absence_is_asked_about(ask) -> None:
    told = ask("What medications is the patient on?", NOTES / "wilson_with_birth_date.pdf")
    assert told["status"] == "answered" and told["patient"]["birth_date"]
    told = ask("What medications is the patient on?", NOTES / "wilson_without_birth_date.pdf")
    assert told["status"] == "needs_clarification" and len(told["options"]) == 3
    pages = told["path"].count("extractor")
    told = ask("the second", thread=told["thread"])
    assert told["status"] == "answered" and told["path"].count("extractor") < pages + 3  # nothing is read again


def test_a_document_about_somebody_else_is_asked_about_and_not_used(ask) -> None:
    told = ask("What medications is Gregory Maddox on?", GONZALEZ)
    assert told["status"] == "needs_clarification"
    told = ask("Gregory Maddox", thread=told["thread"])
    assert told["patient"]["name"] == "Gregory Maddox" and "was not used" in told["answer"]
    assert not [claim for claim in told["claims"] if claim["document"] == GONZALEZ.name]


def test_a_patient_switch_leaves_the_last_ones_document_behind(ask) -> None:
    thread = ask("any allergies?", GONZALEZ)["thread"]
    told = ask("What allergies does Aisha Rahman have?", thread=thread)
    assert told["patient"]["name"] == "Aisha Rahman"
    assert all(claim["document"].startswith("Chart of Aisha Rahman") for claim in told["claims"])
    told = ask("does she meet Northgate's criteria for a knee replacement?", thread=thread)
    assert GONZALEZ.name not in json.dumps(told)


def test_a_clean_request_is_met_quote_by_quote_and_every_quote_is_in_the_ledger(ask, parts) -> None:
    told = ask("Does Maria Gonzalez meet her payer's criteria for a right knee replacement?", GONZALEZ)
    assert told["policy"]["id"] == "NHP-ORTH-001" and {one["verdict"] for one in told["criteria"]} == {"MET"}
    assert all(one["quote"] and one["page"] for one in told["criteria"])
    assert "No chart of Maria Gonzalez" in told["answer"]
    rows = {row["id"]: row["verbatim_quote"] for row in parts["ledger"].rows(told["thread"])}
    assert [rows[number] for number in told["ledger_ids"]] == [claim["quote"] for claim in told["claims"]]
    assert not parts["ledger"].verify()


def test_missing_evidence_is_looked_for_in_the_chart_and_then_flagged_as_insufficient(ask, tmp_path: Path) -> None:
    note = make_pdf(tmp_path / "note.pdf", [[
        *header("Gregory Maddox", "08/25/1974"), "Requested service: right total knee replacement",
        "Right knee pain for 8 months.",
    ]])  # fmt: skip
    told = ask("Does he meet the criteria?", note)
    assert told["path"].count("auditor") == 2 and told["is_partial"] and told["escalate"]
    assert any(line.startswith("Insufficient Documentation: NHP-ORTH-001.3") for line in told["why_escalate"])
    assert "NOT DOCUMENTED" in told["answer"] and told["missing"]


def test_sides_that_do_not_agree_are_asked_about_and_the_pages_are_kept(ask, tmp_path: Path) -> None:
    note = make_pdf(tmp_path / "note.pdf", [
        [*header(), "Requested service: right total knee replacement"],
        ["HISTORY OF PRESENT ILLNESS:", "Left knee pain for 8 months, worse with stairs."],
    ])  # fmt: skip
    told = ask("Does she meet the criteria for a right knee replacement?", note)
    assert told["status"] == "needs_clarification" and [one["id"] for one in told["options"]] == [
        "left",
        "right",
        "both",
    ]
    note.unlink()  # nothing is read again
    told = ask("right", thread=told["thread"])
    assert told["status"] == "answered" and told["contradictions"] and told["escalate"]
    assert next(one for one in told["criteria"] if one["id"] == "NHP-ORTH-001.1")["verdict"] != "MET"


def test_a_request_for_one_leg_and_notes_of_the_other_are_asked_about(ask) -> None:
    told = ask("Does Renee Boudreaux meet the payer's criteria?", NOTES / "boudreaux_leg_mri.pdf")
    assert told["status"] == "needs_clarification" and "side" in told["answer"]
    told = ask("left", thread=told["thread"])
    assert told["status"] == "answered" and told["contradictions"] and told["escalate"]


def test_notes_that_contradict_each_other_are_cited_from_both_sides_and_escalated(ask) -> None:
    told = ask("Are the criteria met?", NOTES / "abernathy_lumbar_mri.pdf")
    assert told["contradictions"] and told["escalate"]
    for one in told["contradictions"]:
        assert one["one"]["quote"] in told["answer"] and one["other"]["quote"] in told["answer"]


def test_an_unreadable_page_is_named_and_the_others_are_read(ask) -> None:
    told = ask("Are the criteria met?", NOTES / "lindqvist_knee_mri.pdf")
    assert told["failed_pages"] and told["is_partial"] and told["escalate"]
    assert any(one["verdict"] == "MET" for one in told["criteria"])


def test_a_policy_that_is_not_indexed_is_not_replaced_by_a_neighbours(ask) -> None:
    told = ask("Does Northgate cover botulinum toxin for her?", GONZALEZ)
    assert told["answer"].count(NO_POLICY) and told["criteria"] == [] and told["policy"] is None and told["escalate"]


def test_a_question_that_names_no_service_is_judged_by_what_the_document_requests(ask) -> None:
    told = ask("Does the request meet the criteria?", NOTES / "maddox_knee_mri.pdf")
    verdicts = [one["verdict"] for one in told["criteria"]]
    assert told["policy"]["id"] == "NHP-IMG-001" and verdicts.count("NOT MET") == 4 and verdicts.count("MET") == 1
    assert not told["insufficient"]  # each criterion is decided by a quote
    assert told["escalate"] and told["answer"].count("A denial is a person's to make.") == 4


def test_a_requested_drug_is_held_against_the_allergies(ask) -> None:
    told = ask("Does she meet the criteria?", NOTES / "rahman_amoxicillin.pdf")
    assert REVIEW in told["answer"] and told["contradictions"] and told["escalate"]


def test_a_grave_finding_stops_for_a_physician(ask) -> None:
    told = ask("Can I give amoxicillin to Aisha Rahman?")
    assert REVIEW in told["answer"] and told["escalate"] and "penicillin" in told["answer"]


class Crash(BaseException):
    """What no handler catches."""


def test_a_crash_between_ledger_and_checkpoint_writes_no_quote_twice(ask, parts) -> None:
    class Dies:
        def __init__(self) -> None:
            self.left = 2

        def write(self, row: Any, key: str = "") -> int:
            number = parts["ledger"].write(row, key)
            self.left -= 1
            if not self.left:
                raise Crash
            return number

    question = "What medications is Aisha Rahman on?"
    with pytest.raises(Crash):
        ask(question, thread="rcm-crash", ledger=Dies())
    assert len(parts["ledger"].rows("rcm-crash")) == 2
    told = ask(question, thread="rcm-crash")
    assert len(parts["ledger"].rows("rcm-crash")) == len(told["claims"]) == 2
    assert told["path"].count("router") == 1  # the rest of that turn, not a new one


def test_a_store_that_is_down_is_answered_for_by_the_kept_chart_and_says_so(ask, settings: Settings) -> None:
    ask("What medications is Gregory Maddox on?")
    down = open_store(Settings(home=settings.home, ehr="http://127.0.0.1:9/fhir", tool_timeout=1))
    told = ask("What medications is Gregory Maddox on?", store=down)
    assert (
        not told["live"]
        and "Live data unavailable" in told["answer"]
        and "ibuprofen" in told["answer"]
        and told["escalate"]
    )
    with pytest.raises(StoreError):  # a chart that was never read is not "nothing recorded"
        ask("What medications is Aisha Rahman on?", store=down)
    down.close()


def test_old_conversations_are_forgotten_and_their_ledger_rows_stay(ask, parts) -> None:
    thread = ask("What medications is Gregory Maddox on?")["thread"]
    ask("What medications is Gregory Maddox on?", settings=parts["settings"].model_copy(update={"rcm_keep_days": 0}))
    assert parts["memory"].get_tuple({"configurable": {"thread_id": thread}}) is None
    assert parts["ledger"].rows(thread)


def test_a_killed_turn_goes_on_with_the_page_at_which_it_stopped(home: Path, tmp_path: Path) -> None:
    note = make_pdf(tmp_path / "long.pdf", [[*header(), f"Page {at} of a long record."] for at in range(1, 41)])
    command = [
        sys.executable,
        "-m",
        "docgemma",
        "rcm",
        "ask",
        "any allergies?",
        "--pdf",
        str(note),
        "--thread",
        "rcm-killed",
        "--json",
    ]
    env = {**os.environ, "DOCGEMMA_HOME": str(home), "DOCGEMMA_SOURCES": "offline", "DOCGEMMA_MODEL": "edge",
           "PYTHONPATH": str(PACKAGE.parent)}  # fmt: skip
    first = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert first.stderr
    for line in first.stderr:
        if "page 7 of 40" in line:
            os.kill(first.pid, signal.SIGKILL)
            break
    read = [line for line in first.stderr if ": page " in line]  # those that were told before the signal came
    assert first.wait() == -signal.SIGKILL and len(read) < 30
    first.stderr.close()
    second = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    pages = [int(line.split("page ")[1].split()[0]) for line in second.stderr.splitlines() if ": page " in line]
    last = 7 + len(read)
    assert pages == list(range(pages[0], 41)) and last <= pages[0] <= last + 2  # a page may be done and not told
    told = json.loads(second.stdout)
    assert told["status"] == "answered" and told["path"].count("router") == 1
