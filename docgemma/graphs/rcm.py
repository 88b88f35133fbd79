"""The graph of the revenue-cycle agent: route, extract a page a step, audit, then ask, or write the ledger and answer.

router -> extractor (again until nothing is left) -> auditor -> extractor (wider) | clarification | ledger -> output.
Every step is checkpointed, so that a turn that was killed goes on with the page at which it stopped.
"""

import hashlib
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from docgemma.ehr.base import RecordStore
from docgemma.errors import UnknownPatientError, UsageError
from docgemma.forget import forget_before
from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import LLM
from docgemma.quiet import quiet
from docgemma.rcm.audit import confidence, escalation, insufficient, verify
from docgemma.rcm.compose import compose, report
from docgemma.rcm.contradictions import contradictions
from docgemma.rcm.evidence import Shelf
from docgemma.rcm.extract import STEPS
from docgemma.rcm.kept import KeptStore
from docgemma.rcm.models import Guarded
from docgemma.rcm.records import MAX_LOOPS, REFUSAL
from docgemma.rcm.scope import intent_of, is_question, person_of, wanted
from docgemma.rcm.tracing import trace
from docgemma.rcm.turn import RcmState, Surroundings, asking, documents_of
from docgemma.reading.reader import Reader
from docgemma.rules.clarify import read_answer
from docgemma.settings import Settings
from docgemma.state import Clarification
from docgemma.text.characters import clean_question

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from docgemma.agent import Agent
    from docgemma.memory import Memory
    from docgemma.rcm.ledger import Ledger

PREFIX = "rcm-"  # of the ids of this agent's conversations
RECURSION_LIMIT = 10_000  # steps of a turn: a page is one


def router(state: RcmState, runtime: Runtime[Surroundings]) -> RcmState:
    """Judge the question alone; or take up the work that a clarification interrupted."""
    around, message, path = runtime.context, state["message"], [*state.get("path", []), "router"]
    if state.get("pending_user_input") and (answered := _answered(state, around)):
        return {**answered, "path": path, "refused": False}
    intent = intent_of(message, around.llm, around.reader)
    if intent == "OUT_OF_SCOPE":  # nothing else changes: what waits goes on waiting
        return {"refused": True, "routing_decision": "out_of_scope", "path": path, "told": "out of scope"}
    want = wanted(message, reader=around.reader, drugs=load_drug_names(), store=cast(RecordStore, around.store))
    return {
        "input_query": message, "query_intent": intent, "refused": False, "extractions": [],
        "pending_user_input": False, "clarification_needed": "", "options": [],
        "asked_for": "", "iteration_count": 0, "confidence_score": 0.0, "confidence": {}, "final_response": "",
        "error": None, "routing_decision": "", "is_partial": False, "insufficient_documentation_flags": [],
        "tool_trace": [], "failed_pages": [], "want": want, "patient": None,
        "papers": [], "notes": [], "criteria": [], "policy": None, "payer": "", "contradictions": [], "risk": None,
        "missing": [], "grave": [], "open_checks": [], "as_of": "", "ledger_ids": [], "why_escalate": [],
        "documents_processed": [], "path": path, "told": intent,
        "todo": ["pages", "identify", "chart", "policy", "gate"],
    }  # fmt: skip


def _answered(state: RcmState, around: Surroundings) -> RcmState | None:
    """The work taken up with what a clarification's answer says; None where the message is no answer."""
    options, message = state["options"], state["message"]
    asked = Clarification(
        kind="patient", question=state["clarification_needed"], tool="", args={}, missing=[],
        options=[{"id": one["id"], "label": one["label"]} for one in options],
    )  # fmt: skip
    chosen = next((one for one in options if one["id"] == read_answer(message, asked)), None)
    update = RcmState(pending_user_input=False, routing_decision="", told="answered")
    if chosen and state["asked_for"] == "side":
        return {**update, "want": {**state["want"], "side": chosen["id"]}, "criteria": [], "todo": ["policy"]}
    if chosen and state["asked_for"] == "payer":
        return {**update, "payer": chosen["id"]}
    if chosen and state["asked_for"] == "service":
        return {**update, "input_query": f"{state['input_query']} ({chosen['label']})"}
    if chosen:
        return {**update, "given_patient": chosen["person"]}
    if state["asked_for"] == "patient" and not is_question(message, around.reader):
        want = wanted(message, reader=around.reader, drugs=load_drug_names(), store=cast(RecordStore, around.store))
        if want["patients"] and len(message.split()) < 9:
            return {**update, "want": {**state["want"], "patients": want["patients"]}}
    return None


def extractor(state: RcmState, runtime: Runtime[Surroundings]) -> RcmState:
    """Do the first of what is left: one page of a document, or one look-up."""
    step, *rest = state["todo"]
    update = STEPS[step](state, runtime.context)
    left = [step, *rest] if step == "pages" and any(file["next"] for file in update.get("files", [])) else rest
    return cast(RcmState, {"todo": left, "path": [*state["path"], "extractor"], **update})


def auditor(state: RcmState, runtime: Runtime[Surroundings]) -> RcmState:
    """Verify every claim; decide whether more is read, a person is asked, or it is answered."""
    around, who, want = runtime.context, state["patient"], state["want"]
    everything = documents_of(state, around, everything=True)
    audited = [verify(claim, everything, asked=who) for claim in state["extractions"]]
    mine = [one for one in everything if one["digest"] in state["documents_processed"]]
    drug = next(iter(want["drugs"]), "")
    found = contradictions(mine, question=state["input_query"], drug=drug, drugs=load_drug_names(), claims=audited,
                           today=date.today()) if mine else []  # fmt: skip
    count = state["iteration_count"]
    update = RcmState(
        extractions=audited, iteration_count=count + 1, path=[*state["path"], "auditor"], told="audited",
    )  # fmt: skip
    if state["query_intent"] == "POLICY_CHECK" and state["criteria"] and mine:
        known = [one for one in found if "side that is" in one["what"]]
        if known and state["asked_for"] != "side":
            said = f"The sides do not agree: {known[0]['what']}. Which side is the request for?"
            sides = [{"id": one, "label": one} for one in ("left", "right", "both")]
            return {**update, **asking("side", said, sides)}
    update["contradictions"] = found
    gaps = insufficient(state["criteria"])
    wider = documents_of({**state, "iteration_count": count + 1}, around)
    if gaps and count + 1 < MAX_LOOPS and len(wider) > len(documents_of(state, around)):
        return {**update, "routing_decision": "missing", "todo": ["policy"], "told": "wider evidence"}
    partial = bool(gaps or state["failed_pages"])
    sure = confidence(audited, state["criteria"])
    why = escalation(state["criteria"], found, bool(state["grave"]), sure["score"], partial)
    why += [state["error"]] if state["error"] else []
    why += [note for note in state["notes"] if "does not say whose" in note or "Live data" in note]
    why += [f"{one['document']}, page {one['page']}: {one['why']}" for one in state["failed_pages"]]
    why += [f"Could not be checked: {one}" for one in state["open_checks"]]
    why += [f"The model {name} did not answer; the next one, or code alone, decided." for name in around.llm.down]
    why = list(dict.fromkeys(why))
    return {
        **update, "routing_decision": "partial" if partial else "pass", "is_partial": partial, "why_escalate": why,
        "insufficient_documentation_flags": gaps, "confidence_score": sure["score"], "confidence": sure,
    }  # fmt: skip


def clarification(state: RcmState) -> RcmState:
    """Ask a person; everything is kept until they answer. A document that was left out is told at once."""
    unused = [note for note in state["notes"] if "not used" in note]
    return {
        "pending_user_input": True,
        "path": [*state["path"], "clarification"],
        "final_response": "\n".join([state["clarification_needed"], *(f"Note: {one}" for one in unused)]),
    }


def write_ledger(state: RcmState, runtime: Runtime[Surroundings]) -> RcmState:
    """Write every verified quote once: its key stands for conversation, turn and quote, also across a crash."""
    around, ids = runtime.context, list[int]()
    person = state["patient"]
    who = (person and (person["id"] or f"{person['name']}, born {person['birth_date'] or 'unknown'}")) or "no patient"
    for claim in state["extractions"]:
        if not claim["verified"]:
            continue
        said = "\0".join([claim["document"], str(claim["page"]), claim["quote"], claim.get("criterion", "")])
        row = dict(
            patient_id=who[:64], session_id=around.thread, verbatim_quote=claim["quote"],
            source_document=claim["document"], page_number=claim["page"],
            policy_id=state["policy"]["id"] if state["policy"] else "",
            confidence_score=round(state["confidence_score"] * 100, 2),
            auditor_result="ESCALATED" if state["why_escalate"] else "PASS",
        )  # fmt: skip
        key = f"{around.thread}:{state['turn']}:{hashlib.sha256(said.encode()).hexdigest()}"
        ids.append(around.ledger.write(row, key))
    written = [{"name": "evidence_ledger_write", "ok": True, "source": f"{len(ids)} rows"}] if ids else []
    return {
        "ledger_ids": ids,
        "path": [*state["path"], "ledger"],
        "tool_trace": [*state["tool_trace"], *written],
        "told": f"{len(ids)} quotes written",
    }


def output(state: RcmState) -> RcmState:
    """The answer, filtered by intent, with its disclaimer; or the refusal, word for word."""
    path = [*state["path"], "output"]
    if state["refused"]:
        return {"path": path, "final_response": REFUSAL, "told": "refused"}
    return {"path": path, "final_response": compose(cast(dict[str, Any], state)), "told": "answered"}


def after_router(state: RcmState) -> str:
    return "output" if state["refused"] else "extractor"


def after_extraction(state: RcmState) -> str:
    if state["routing_decision"] == "ambiguous":
        return "clarification"
    return "extractor" if state["todo"] else "auditor"


def after_audit(state: RcmState) -> str:
    return {"missing": "extractor", "ambiguous": "clarification"}.get(state["routing_decision"], "ledger")


def build() -> StateGraph[RcmState, Surroundings, RcmState, RcmState]:
    graph = StateGraph(RcmState, context_schema=Surroundings)
    nodes: dict[str, Any] = {
        "router": router, "extractor": extractor, "auditor": auditor, "clarification": clarification,
        "ledger": write_ledger, "output": output,
    }  # fmt: skip
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", after_router, ["extractor", "output"])
    graph.add_conditional_edges("extractor", after_extraction, ["extractor", "auditor", "clarification"])
    graph.add_conditional_edges("auditor", after_audit, ["extractor", "clarification", "ledger"])
    graph.add_edge("ledger", "output")
    graph.add_edge("clarification", END)
    graph.add_edge("output", END)
    return graph


def run(
    question: str, *, settings: Settings, llm: LLM, store: RecordStore, knowledge: Knowledge, reader: Reader,
    memory: "Memory", ledger: "Ledger", pdf: Sequence[Path] = (), thread: str | None = None, patient: str | None = None,
    on_step: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One turn, or the rest of one that was cut off with the same question: the contract's JSON of `rcm ask`.

    Args:
        thread: a conversation of this agent; one that is not there is begun under this id.
        patient: id of the patient whom the question is about.
        on_step: gets {"node", "detail"} after each step.

    Raises:
        UsageError: the question, a document or the patient cannot be used.
        StoreError, ToolError: what could not be reached; the conversation stays usable.
    """
    from docgemma.rcm.pii import Scrubber

    began, message, tell = perf_counter(), clean_question(question), on_step or (lambda step: None)
    thread = thread or f"{PREFIX}{uuid.uuid4().hex[:12]}"
    forget_before(settings, memory, datetime.now(UTC) - timedelta(days=settings.rcm_keep_days), PREFIX)
    scrubber = Scrubber()
    guarded, shelf = Guarded(llm, scrubber, settings), Shelf(settings, thread)
    kept = KeptStore(store, settings.home / "rcm-charts.sqlite")
    around = Surroundings(settings, guarded, kept, knowledge, reader, ledger, shelf, thread)
    app = build().compile(checkpointer=memory)
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION_LIMIT}
    try:
        _check_own(memory, config, thread)
        stored = app.get_state(config)
        cut_off = bool(stored.tasks) and stored.values.get("message") == message
        given: RcmState | None = None if cut_off else _turn(message, stored.values, pdf, patient, around)
        steps, since = list[dict[str, Any]](), perf_counter()
        state = cast(RcmState, {})  # of this run: what another process does meanwhile is its own
        with quiet():
            modes: list[Any] = ["updates", "values"]
            told: Any
            for mode, told in app.stream(given, config, context=around, stream_mode=modes, durability="sync"):
                if mode == "values":
                    state = cast(RcmState, told)
                    continue
                for node, changed in told.items():
                    tell({"node": node, "detail": (changed or {}).get("told", "")})
                    steps.append({"node": node, "seconds": perf_counter() - since})
                    since = perf_counter()
        done = report(state, thread, guarded, perf_counter() - began)
        trace(settings, scrubber.scrub, message, done, steps)
        return done
    finally:
        kept.close()
        guarded.close()


def _check_own(memory: "Memory", config: "RunnableConfig", thread: str) -> None:
    """Raise where another agent's conversation has this id: a turn would write over what that one knows."""
    found = memory.get_tuple(config)
    known = {*RcmState.__annotations__, "__start__"}
    held = found.checkpoint["channel_values"] if found else {}
    if any(name not in known and not name.startswith("branch:") for name in held):
        raise UsageError(f"{thread!r} is a conversation of another agent.", hint="Leave out --thread to start one.")


def parts_of(agent: "Agent") -> dict[str, Any]:
    """What `run` needs of an agent that is open: `run(question, **parts_of(agent))`; the agent stays its owner's."""
    from docgemma.rcm.ledger import open_ledger

    own = {name: getattr(agent, name) for name in ("settings", "llm", "store", "knowledge", "reader", "memory")}
    return {**own, "ledger": open_ledger(agent.settings.db_location)}


def _turn(
    message: str, stored: dict[str, Any], pdf: Sequence[Path], patient: str | None, around: Surroundings
) -> RcmState:
    """What a new message brings; a clarification that waits keeps the files of its question."""
    turn = RcmState(message=message, path=[])
    if pdf or not stored.get("pending_user_input"):
        turn |= {"files": [around.shelf.begin(path) for path in pdf], "turn": uuid.uuid4().hex, "given_patient": None}
    if patient is not None:
        match = around.store.patient(patient.strip())
        if match is None:
            raise UnknownPatientError(f"There is no patient with the id {patient!r}.", hint="docgemma ehr search NAME")
        turn["given_patient"] = person_of(match)
    return turn
