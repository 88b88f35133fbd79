"""Turns that stand on earlier ones: the active patient, answers to open questions, approvals, edits, rejections."""

import pytest

from docgemma.agent import Agent
from docgemma.errors import UsageError
from docgemma.text.rewording import reworded
from tests.scripted import ScriptedLLM
from tests.test_graph_v3 import LOOP, intent, rich

ORDER = "Prescribe amoxicillin 500 mg three times daily for ghi-789"


def look_up_john(agent: Agent, llm: ScriptedLLM) -> str:
    rich(intent(llm, "search_patient")).enqueue("synthesize", "Found John Smith.")
    return agent.ask("Find patient John Smith")["thread"]


def ask_which_wilson(agent: Agent, llm: ScriptedLLM) -> dict:
    return agent.ask("Search for patient James Wilson") if intent(llm, "search_patient") else {}


def test_what_are_his_meds_means_the_patient_of_the_turn_before(agent: Agent, scripted: ScriptedLLM) -> None:
    thread = look_up_john(agent, scripted)
    rich(intent(scripted, "get_patient_chart")).enqueue("synthesize", "He takes metformin.")
    result = agent.ask("What are his meds?", thread=thread)
    assert result["tools"][-1]["args"] == {"patient_id": "abc-123"}
    assert "metformin" in result["answer"].lower()


def test_history_reaches_the_model_with_the_last_turns_only(agent: Agent, scripted: ScriptedLLM) -> None:
    thread = None
    for number in range(6):
        intent(scripted).enqueue("synthesize", f"Reply {number}.")
        thread = agent.ask(f"Hello number {number}", thread=thread)["thread"]
    told = scripted.history[-1][1].user
    assert "Hello number 4" in told and "Hello number 1" in told and "Hello number 0" not in told


def test_another_named_patient_is_not_confused_with_the_active_one(agent: Agent, scripted: ScriptedLLM) -> None:
    thread = look_up_john(agent, scripted)
    rich(intent(scripted, "search_patient"), 2).enqueue("synthesize", "Maria Garcia's chart.")
    result = agent.ask("Show me the chart of Maria Garcia", thread=thread)
    assert {"patient_id": "def-456"} in [tool["args"] for tool in result["tools"]]
    assert {"patient_id": "abc-123"} not in [tool["args"] for tool in result["tools"]]


@pytest.mark.parametrize("words", ["the second one", "2", "number two"])
def test_an_ordinal_answers_the_question_and_nothing_is_redone(
    agent: Agent, scripted: ScriptedLLM, valid, words: str
) -> None:
    asked = ask_which_wilson(agent, scripted)
    scripted.enqueue("synthesize", "James Wilson was found.")
    result = valid(agent.ask(words, thread=asked["thread"]))
    assert result["status"] == "answered"
    assert "intent_classify" not in result["path"] and "tool_execute" not in result["path"]
    chosen = asked["options"][1]["id"]
    assert agent._stored(asked["thread"]).values["active_patient"]["id"] == chosen


def test_after_the_choice_the_rest_of_the_question_goes_on(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    intent(scripted, "search_patient")
    asked = agent.ask("Find patient James Wilson and check his chart")
    rich(scripted).enqueue("synthesize", "His chart was reviewed.")
    result = valid(agent.ask("the first one", thread=asked["thread"]))
    assert result["path"] == ["input_assembly", "router", *LOOP, "synthesize"]
    assert result["tools"][-1]["args"] == {"patient_id": asked["options"][0]["id"]}


def test_a_new_question_leaves_the_open_one_behind(agent: Agent, scripted: ScriptedLLM) -> None:
    asked = ask_which_wilson(agent, scripted)
    rich(intent(scripted, "check_drug_safety")).enqueue("synthesize", "Dofetilide has a boxed warning.")
    result = agent.ask("Check FDA warnings for dofetilide", thread=asked["thread"])
    assert [tool["name"] for tool in result["tools"]] == ["check_drug_safety"]


def test_an_order_shows_the_allergy_it_conflicts_with(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    intent(scripted, "prescribe_medication")
    waiting = valid(agent.ask(ORDER))
    assert any(
        "penicillin" in item.lower() and "allergy" in item.lower() for item in waiting["pending_write"]["findings"]
    )


def test_a_rejected_order_is_not_written_and_says_so(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    before = len(agent.store.chart("ghi-789").medications)
    waiting = agent.ask(ORDER) if intent(scripted, "prescribe_medication") else {}
    rich(scripted).enqueue("synthesize", "Amoxicillin 500 mg was prescribed.")
    result = valid(agent.decide(waiting["thread"], "reject"))
    assert result["status"] == "refused"
    assert len(agent.store.chart("ghi-789").medications) == before
    assert "not recorded" in result["answer"].lower()


def test_an_edited_order_is_checked_again_and_written_as_edited(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    waiting = agent.ask(ORDER) if intent(scripted, "prescribe_medication") else {}
    rich(scripted).enqueue("synthesize", "Azithromycin was ordered.")
    change = {"medication_name": "azithromycin", "frequency": "once daily"}
    result = agent.decide(waiting["thread"], "edit", change)
    if result["pending_write"]:  # the edit raised a finding of its own: it is shown before anything is written
        assert set(result["pending_write"]["findings"]) - set(waiting["pending_write"]["findings"])
        result = agent.decide(waiting["thread"], "approve")
    assert valid(result)["status"] == "answered"
    written = [str(item) for item in agent.store.chart("ghi-789").medications]
    assert any("azithromycin" in item for item in written) and not any("amoxicillin" in item for item in written)


def test_an_edit_of_an_unknown_field_is_refused_and_the_write_still_waits(agent: Agent, scripted: ScriptedLLM) -> None:
    waiting = agent.ask(ORDER) if intent(scripted, "prescribe_medication") else {}
    with pytest.raises(UsageError, match="colour"):
        agent.decide(waiting["thread"], "edit", {"colour": "blue"})
    assert agent.pending(waiting["thread"])


def test_a_write_without_a_patient_asks_for_one_and_goes_on_with_the_answer(
    agent: Agent, scripted: ScriptedLLM, valid
) -> None:
    intent(scripted, "prescribe_medication")
    asked = valid(agent.ask("Prescribe lisinopril 10 mg once daily"))
    assert asked["status"] == "needs_clarification"
    assert "patient ID" in asked["answer"] and asked["answer"].count("?") == 1
    waiting = valid(agent.ask("abc-123", thread=asked["thread"]))
    assert waiting["status"] == "needs_approval"
    assert waiting["pending_write"]["args"]["patient_id"] == "abc-123"


def test_two_threads_never_see_each_other(agent: Agent, scripted: ScriptedLLM) -> None:
    first = look_up_john(agent, scripted)
    intent(scripted).enqueue("synthesize", "Hello.")
    second = agent.ask("Hello")["thread"]
    assert first != second
    assert "John Smith" not in scripted.history[-1][1].user


def test_nothing_is_prescribed_for_a_deceased_patient(agent: Agent, scripted: ScriptedLLM, valid) -> None:
    patient = agent.store.search_patients("Harold Baxter")[0].id
    before = len(agent.store.chart(patient).medications)
    intent(scripted, "prescribe_medication").enqueue("synthesize", "Lisinopril was prescribed.")
    result = valid(agent.ask(f"Prescribe lisinopril 10 mg once daily for {patient}"))
    assert result["pending_write"] is None and result["tools"][-1]["error_type"] == "not_permitted"
    assert "deceased" in result["answer"] and "was prescribed" not in result["answer"].replace(
        "Nothing was prescribed", ""
    )
    assert len(agent.store.chart(patient).medications) == before


def test_a_smoking_history_is_in_the_chart(agent: Agent) -> None:
    chart = agent.toolbox.call("get_patient_chart", {"patient_id": "555"}, agent.tool_context())
    assert "smok" in chart["formatted_result"].lower()


def test_a_name_will_do_where_an_id_was_asked_for(agent: Agent, scripted: ScriptedLLM) -> None:
    intent(scripted, "prescribe_medication")
    asked = agent.ask("Prescribe lisinopril 10 mg once daily")
    waiting = agent.ask("John Smith", thread=asked["thread"])
    assert waiting["pending_write"]["args"]["patient_id"] == "abc-123"


@pytest.mark.parametrize(("name", "read_as"), [("dofeyilide", "dofetilide"), ("gopragliflozin", None)])
def test_an_unknown_drug_is_never_replaced_by_one_of_the_history(
    agent: Agent, scripted: ScriptedLLM, name: str, read_as: str | None
) -> None:
    """A misspelt name is read as the nearest one, and the answer says so; a name that nobody knows stays one."""
    rich(intent(scripted, "check_drug_safety")).enqueue("synthesize", "Amiodarone has a boxed warning.")
    thread = agent.ask("Check FDA warnings for amiodarone")["thread"]
    rich(intent(scripted, "check_drug_safety")).enqueue("synthesize", "")
    result = agent.ask(f"Same question: FDA warnings for {name}?", thread=thread)
    called = [tool["args"]["drug_name"] for tool in result["tools"]]
    assert called == ([read_as] if read_as else []) or (not read_as and called == [name])
    assert "amiodarone" not in result["answer"].lower()
    if read_as:
        assert f"{name} was read as {read_as}." in result["answer"]
    else:
        assert result["status"] == "needs_clarification" and result["answer"].startswith("Did you mean")


@pytest.mark.parametrize(
    ("first", "then", "args"),
    [
        (
            "dapagliflozin 10 od okafor",
            "nah binned that. acei first - ramipril 2.5 od",
            {"medication_name": "ramipril"},
        ),
        ("would losartan be ok for okafor", "ok losartan 50 od for her", {"dosage": "50 mg"}),
        (
            "add allergy dorothy okafor: ramipril - cough, mild",
            "no hang on wrong pt. its tanaka, and tongue swelling not cough. severe",
            {"substance": "ramipril", "reaction": "tongue swelling", "severity": "severe"},
        ),
    ],
)
def test_an_order_that_follows_a_rejection_or_a_question_is_a_card(offline_agent, first, then, args) -> None:
    before = offline_agent.ask(first)
    if before["pending_write"]:
        offline_agent.decide(before["thread"], "reject")
    waiting = offline_agent.ask(then, thread=before["thread"])["pending_write"]
    assert args.items() <= waiting["args"].items()


def test_another_order_takes_the_place_of_a_card_that_waits(offline_agent) -> None:
    thread = offline_agent.ask("dapagliflozin 10 od okafor")["thread"]
    waiting = offline_agent.ask("scrap that, atenolol 25 mg od", thread=thread)["pending_write"]
    assert waiting["args"]["medication_name"] == "atenolol"
    offline_agent.decide(thread, "reject")
    assert offline_agent.pending(thread) is None


def test_an_order_that_was_read_as_not_wanted_is_named(offline_agent) -> None:
    told = offline_agent.ask("dr lin said not to give kcl 20 meq po to abc-123")["answer"]
    assert "No entry was prepared, as you said." in told and "major interaction" in told.lower()


def test_a_note_of_somebody_else_asks_whom_it_is_for_and_opens_no_chart(offline_agent) -> None:
    told = offline_agent.ask("note on abc-123 - seen re... ah no wrong pt ignore that, thats someone elses")
    assert told["answer"] == "No entry was prepared, as you said. Whom is it for? Give a name or an ID."


def test_a_note_that_says_nkda_gets_the_recorded_allergies(offline_agent) -> None:
    card = offline_agent.ask("save note abc-123: nkda, bp 150/90")["pending_write"]
    assert card["findings"] == [
        "You wrote NKDA; the chart has: sulfamethoxazole (rash, moderate), recorded 2016-02-08."
    ]


def test_an_order_that_was_asked_about_beside_another_drug_is_the_one_with_the_dose(offline_agent) -> None:
    thread = offline_agent.ask("lindqvist. omeprazole 20mg od alongside the naproxen, ok for her?")["thread"]
    order = offline_agent.ask("ok do it", thread=thread)["pending_write"]["args"]
    assert (order["medication_name"], order["dosage"], order["frequency"]) == ("omeprazole", "20mg", "once daily")


def test_another_drug_takes_the_place_of_the_one_that_waits_with_its_own_dose(offline_agent) -> None:
    thread = offline_agent.ask("Okafor dorothy - enalapril 5mg bd")["thread"]
    order = offline_agent.ask("oh not enalapril, ramipril. 2.5 od", thread=thread)["pending_write"]["args"]
    assert (order["medication_name"], order["dosage"], order["frequency"]) == ("ramipril", "2.5 mg", "once daily")


def test_another_order_after_a_recorded_one_waits_and_the_recorded_one_is_said_to_stay(offline_agent) -> None:
    thread = offline_agent.ask("cyclizine 50mg tds prn for kavita deshmukh")["thread"]
    offline_agent.decide(thread, "approve")
    told = offline_agent.ask("oh onc said ondansetron 4mg tds, give her that instead", thread=thread)
    assert told["pending_write"]["args"]["medication_name"] == "ondansetron"
    assert "I cannot remove, stop or change an entry" in told["answer"]


def test_what_else_can_be_given_is_told_of_the_drug_asked_about_before(offline_agent) -> None:
    thread = offline_agent.ask("rebecca goldstein ibuprofen 400 tds for her shoulder - ok?")["thread"]
    told = offline_agent.ask("so what can i give", thread=thread)["answer"]
    assert told.startswith("Checked for this patient, analgesics:") and "acetaminophen" in told.split("\n")[0]


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        # a study that is asked for of what was asked before
        ("tariq mahmood smoking, clozapine ok?", "evidence for that?", "Impact of smoking behavior on clozapine"),
        ("Moreau nauseous, prochlorperazine?", "any study about the sudden death", "Domperidone and ventricular"),
        ("haddad clopidogrel with omeprazole ok?", "any rct", "Clopidogrel with or without Omeprazole"),
        # another of those who share the name
        ("bp james wilson 2001-12-05", "and the one on sertraline?", "born 1985-07-30"),
        ("a1c of the Wilson with coeliac", "sorry, the namesake with the heart failure, what diuretic", "furosemide"),
        # one patient is spoken of: the first one is a drug
        ("kavita deshmukh's meds", "stick with the first one. still on it?", "Patient: Kavita Deshmukh"),
    ],
)
def test_a_message_goes_on_with_the_one_before(offline_agent, first, then, told) -> None:
    thread = offline_agent.ask(first)["thread"]
    assert told in offline_agent.ask(then, thread=thread)["answer"]


@pytest.mark.parametrize(
    ("messages", "card", "told"),
    [
        # another drug takes the place of the one that waits; the same order said again is the same entry
        (["haddad add omeprazole 20 od", "change that to famotidine 20 od", "APPROVE"], {}, "Prescribed famo"),
        (["amox 500 tds 5 days for tanaka", "500 mg tds for 7 days", "APPROVE"], {}, "Prescribed amoxicillin"),
        # a rejection within a longer message, and a question that rejects nothing
        (["thornton amiodarone 200 od", "no, reject that. what of his digoxin"], {}, "The clinician rejected it."),
        (["kamau simvastatin 20 nocte", "is anything pending?"], {"medication_name": "simvastatin"}, "waits"),
        # whom it is for after a correction is whom the next message means
        (["apixaban 5 bd for shevchenko", "sorry I meant wisniewska", "whats her hb"], {"dosage": "5 mg"}, "12.9 g/dL"),
        # a rejected order lends another one no frequency, and a correction is shown as it was written
        (["goldstein ramipril 2.5 nocte", "leave it", "amlodipine 5 instead"], {}, "information: frequency"),
        (["cefalexin 500 tds for raghunathan", "bd not tds", "her hb?"], {"frequency": "twice daily"}, "(written: bd)"),
        # words approve nothing, and say so
        (["goldstein ramipril 2.5 od", "yes approve it"], {"dosage": "2.5 mg"}, "Not approved: words approve nothing."),
        (["james wilson 1985 meds", "start ibuprofen 400 mg tds for the old one"], {"dosage": "400 mg"}, "1949-02-11"),
        # an order for another patient too
        (["trimethoprim 200 mg bd d'angelo", "APPROVE", "same for amara diallo"], {"dosage": "200 mg"}, "Amara Diallo"),
        # somebody who is described while another is open
        (["mahmood anc", "what about the wilson with the warfarin, naproxen ok?"], {}, "naproxen for James Wil"),
        (["wilson k?", "1 g paracetamol qds for him then"], {}, "Which one did you mean?"),
    ],
)  # fmt: skip
def test_a_conversation_with_a_card_goes_on(offline_agent, messages, card, told) -> None:
    thread, done = None, {}
    for message in messages:
        approves = message == "APPROVE"
        done = offline_agent.decide(thread, "approve") if approves else offline_agent.ask(message, thread=thread)
        thread = done["thread"]
    waits = (done["pending_write"] or {}).get("args", {})
    assert card.items() <= waits.items() and bool(waits) == bool(card)
    assert told in str([done["answer"], done["pending_write"]])


@pytest.mark.parametrize("said", ["change 'this week' to 'until friday'", 'no: "this week" should be "until friday"'])
def test_words_of_a_waiting_note_are_replaced_by_others_in_quotes(said) -> None:
    assert reworded("mtx held this week, URTI", said) == "mtx held until friday, URTI"
