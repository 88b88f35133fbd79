"""A question while a card waits is answered and the card stays; words correct and reject it, and never approve it."""

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from docgemma.agent import Agent
from docgemma.settings import Settings
from tests.test_kill import DONE, in_child

ORDER = "Prescribe lisinopril 10 mg once daily for def-456"
ALLERGY = "Add a penicillin allergy with hives for def-456"
AN_ASIDE = "Check FDA warnings for dofetilide"


def entries(agent: Agent, patient: str = "def-456") -> list[int]:
    chart = agent.store.chart(patient)
    return [len(chart.medications), len(chart.allergies), len(chart.notes)]


def same_card(one: dict, other: dict) -> bool:
    return {key: one[key] for key in ("name", "patient", "args")} == {
        key: other[key] for key in ("name", "patient", "args")
    }


def test_an_aside_is_answered_the_card_stays_and_an_approval_writes_once(edge_agent: Agent, valid) -> None:
    before = entries(edge_agent)
    waiting = valid(edge_agent.ask(ORDER))
    aside = valid(edge_agent.ask(AN_ASIDE, thread=waiting["thread"]))
    assert "boxed warning" in aside["answer"].lower(), "what was asked is answered"
    assert aside["status"] == "needs_approval" and same_card(aside["pending_write"], waiting["pending_write"])
    assert aside["path"].count("reopen_card") == 1 and entries(edge_agent) == before
    done = valid(edge_agent.decide(waiting["thread"], "approve"))
    assert done["status"] == "answered" and done["pending_write"] is None
    assert entries(edge_agent) == [before[0] + 1, *before[1:]]
    assert [tool["name"] for tool in done["tools"]] == ["prescribe_medication"], "the aside was a turn of its own"


def test_several_asides_hold_one_card_and_each_is_answered(edge_agent: Agent, valid) -> None:
    before = entries(edge_agent)
    thread = (waiting := edge_agent.ask(ORDER))["thread"]
    for question, fact in (
        (AN_ASIDE, "Dofetilide"),
        ("labs of abc-123", "eGFR"),
        ("What is hypertension?", "pressure"),
    ):
        aside = valid(edge_agent.ask(question, thread=thread))
        assert fact in aside["answer"] and same_card(aside["pending_write"], waiting["pending_write"]), question
    done = edge_agent.decide(thread, "approve")
    assert done["status"] == "answered" and entries(edge_agent) == [before[0] + 1, *before[1:]]


def test_an_aside_about_another_patient_does_not_move_the_card_to_them(edge_agent: Agent) -> None:
    others = entries(edge_agent, "abc-123")
    thread = edge_agent.ask(ORDER)["thread"]
    aside = edge_agent.ask("Show me the chart of John Smith", thread=thread)
    assert "John Smith" in aside["answer"] and aside["pending_write"]["patient"]["id"] == "def-456"
    edge_agent.decide(thread, "approve")
    assert entries(edge_agent, "abc-123") == others


def test_an_edit_after_an_aside_is_written_as_edited_once(edge_agent: Agent) -> None:
    before = entries(edge_agent)
    thread = edge_agent.ask(ORDER)["thread"]
    edge_agent.ask(AN_ASIDE, thread=thread)
    result = edge_agent.decide(thread, "edit", {"dosage": "5 mg"})
    while result["pending_write"] and result["pending_write"]["args"]["dosage"] == "5 mg":
        result = edge_agent.decide(thread, "approve")
    assert result["status"] == "answered" and entries(edge_agent)[0] == before[0] + 1


@pytest.mark.parametrize(
    ("order", "said", "field", "value"),
    [
        (ORDER, "no, 5 mg", "dosage", "5 mg"),
        (ORDER, "sorry, I meant 20 mg", "dosage", "20 mg"),
        (ORDER, "actually twice daily", "frequency", "twice daily"),
        (ALLERGY, "actually it was anaphylaxis", "reaction", "anaphylaxis"),
    ],
)
def test_a_correction_in_words_amends_the_card_and_writes_nothing(
    edge_agent: Agent, valid, order: str, said: str, field: str, value: str
) -> None:
    before = entries(edge_agent)
    waiting = edge_agent.ask(order)
    amended = valid(edge_agent.ask(said, thread=waiting["thread"]))
    assert amended["status"] == "needs_approval"
    assert amended["pending_write"]["args"] | {field: value} == amended["pending_write"]["args"]
    rest = {key: item for key, item in waiting["pending_write"]["args"].items() if key not in (field, "severity")}
    assert rest.items() <= amended["pending_write"]["args"].items(), "nothing else of the card changes"
    assert entries(edge_agent) == before


def test_an_amended_card_is_written_as_amended_and_once(edge_agent: Agent) -> None:
    before = entries(edge_agent)
    thread = edge_agent.ask(ORDER)["thread"]
    edge_agent.ask("no, 5 mg", thread=thread)
    done = edge_agent.decide(thread, "approve")
    assert done["status"] == "answered" and done["tools"][-1]["args"]["dosage"] == "5 mg"
    assert entries(edge_agent) == [before[0] + 1, *before[1:]]


def test_an_order_with_abbreviations_is_written_once_and_shows_what_was_written(edge_agent: Agent, valid) -> None:
    before = entries(edge_agent)
    waiting = valid(edge_agent.ask("Start bisoprolol 1.25 mg od for def-456"))
    card = waiting["pending_write"]
    assert card["args"]["frequency"] == "once daily" and card["original"] == {"frequency": "od"}
    done = valid(edge_agent.decide(waiting["thread"], "approve"))
    assert done["pending_write"] is None and done["status"] == "answered"
    assert entries(edge_agent) == [before[0] + 1, *before[1:]]


@pytest.mark.parametrize("said", ["cancel that", "forget it, don't order it", "no, cancel the order"])
def test_words_reject_a_card(edge_agent: Agent, valid, said: str) -> None:
    before = entries(edge_agent)
    waiting = edge_agent.ask(ORDER)
    result = valid(edge_agent.ask(said, thread=waiting["thread"]))
    assert result["status"] == "refused" and result["pending_write"] is None
    assert "not recorded" in result["answer"].lower() and entries(edge_agent) == before


@pytest.mark.parametrize(
    "said", ["yes", "ok", "approve", "approve it", "go ahead", "confirmed, write it", "looks good, sign it"]
)
def test_words_never_approve_a_card(edge_agent: Agent, valid, said: str) -> None:
    before = entries(edge_agent)
    waiting = edge_agent.ask(ORDER)
    result = valid(edge_agent.ask(said, thread=waiting["thread"]))
    assert result["status"] == "needs_approval" and same_card(result["pending_write"], waiting["pending_write"])
    assert entries(edge_agent) == before


def test_every_card_names_the_patient_in_text_and_in_data(edge_agent: Agent, valid) -> None:
    waiting = valid(edge_agent.ask(ORDER))
    who = waiting["pending_write"]["patient"]
    assert who == {"id": "def-456", "name": "Maria Garcia", "birth_date": "1971-09-03"}
    assert all(part in waiting["answer"] for part in who.values())


def test_an_order_for_another_patient_while_a_card_waits_never_changes_that_card(edge_agent: Agent) -> None:
    thread = edge_agent.ask(ORDER)["thread"]
    result = edge_agent.ask("Prescribe metformin 500 mg twice daily for abc-123", thread=thread)
    card = result["pending_write"]
    whose = {"lisinopril": "def-456", "metformin": "abc-123"}
    assert card and whose[card["args"]["medication_name"]] == card["patient"]["id"] == card["args"]["patient_id"]


# -- kill -9 while a card is put aside -----------------------------------------------------------------------------


def test_a_kill_at_every_step_between_hold_and_reshow_loses_no_card_and_writes_once(home: Path, tmp_path: Path) -> None:
    """The aside passes some forty stores of a checkpoint; the process dies at every third of them in turn."""
    for death in (*range(1, 40, 3), None):
        folder = Path(home.parent / f"aside{death}")
        os.system(f"cp -r {home} {folder}")
        assert in_child(partial(order, folder)) == DONE
        assert in_child(partial(ask_aside, folder, death)) in (DONE, -signal.SIGKILL)
        assert in_child(partial(finish, folder)) == DONE, f"killed at {death}"


def order(folder: Path) -> None:
    with Agent(Settings(home=folder, sources="offline"), model="edge") as agent:
        assert agent.ask(ORDER, thread="t", create=True)["pending_write"]


def ask_aside(folder: Path, death: int | None) -> None:
    with Agent(Settings(home=folder, sources="offline"), model="edge") as agent:
        put, count = type(agent.memory).put, [0]

        def dying(*args, **kwargs):
            count[0] += 1
            if count[0] == death:
                os.kill(os.getpid(), signal.SIGKILL)
            return put(*args, **kwargs)

        type(agent.memory).put = dying
        agent.ask(AN_ASIDE, thread="t")


def finish(folder: Path) -> None:
    """Whatever was kept: the card is there or comes back, and an approval writes it once."""
    with Agent(Settings(home=folder, sources="offline"), model="edge") as agent:
        before = entries(agent)
        agent.proceed("t")
        result = agent.ask(AN_ASIDE, thread="t")
        assert result["pending_write"] and "dofetilide" in result["answer"].lower(), result
        done = agent.decide("t", "approve")
        assert done["pending_write"] is None and entries(agent) == [before[0] + 1, *before[1:]], done
