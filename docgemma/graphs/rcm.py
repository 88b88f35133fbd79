"""The graph of the revenue-cycle agent: route, extract a page a step, audit, then ask, or write the ledger and answer.

router -> extractor (again until nothing is left) -> auditor -> extractor (wider) | clarification | ledger -> output.
Every step is checkpointed, so that a turn that was killed goes on with the page at which it stopped.
"""

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from docgemma.ehr.base import Chart, RecordStore
from docgemma.errors import ModelError, StoreError, UnknownPatientError
from docgemma.forget import forget_before
from docgemma.knowledge.base import Knowledge
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.llm.base import LLM
from docgemma.rcm import evidence
from docgemma.rcm.chart import chart_claims, chart_document
from docgemma.rcm.compose import CHART_KINDS, compose
from docgemma.rcm.evidence import Reading, Shelf
from docgemma.rcm.kept import KeptStore
from docgemma.rcm.models import Guarded
from docgemma.rcm.people import Person, differs, everyone, fits_pronoun, settle, shown
from docgemma.rcm.records import (
    DISCLAIMER,
    MAX_LOOPS,
    NO_POLICY,
    REFUSAL,
    Claim,
    Contradiction,
    Document,
    Identity,
    Intent,
    Judged,
    LedgerRow,
    Policy,
    Risk,
)  # fmt: skip
from docgemma.rcm.scope import Wanted, intent_of, speaks_only_of, wanted
from docgemma.reading.reader import Reader
from docgemma.rules.clarify import read_answer
from docgemma.settings import Settings
from docgemma.state import Clarification
from docgemma.text.characters import clean_question

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from docgemma.memory import Memory
    from docgemma.rcm.ledger import Ledger
    from docgemma.rcm.policies import PolicyIndex

PREFIX = "rcm-"  # of the ids of this agent's conversations
RECURSION_LIMIT = 10_000  # steps of a turn: a page is one
KEPT = 10  # messages of a conversation
REQUESTED = 8  # passages that say what is requested
WIDTHS = 3  # what the criteria are judged on: the documents; the chart too; what the conversation read before too


class RcmState(TypedDict, total=False):
    """What a conversation knows; plain data, so that a checkpoint holds it. Pages lie in files beside it."""

    message: str  # as it came in
    input_query: str  # the question of this turn; of the one that is resumed where a clarification is answered
    query_intent: Intent
    refused: bool
    documents_processed: list[str]
    extractions: list[Claim]
    audit_results: list[dict[str, Any]]
    pending_user_input: bool
    clarification_needed: str
    clarification_response: str
    options: list[dict[str, Any]]  # of the clarification: {"id", "label", ...}
    asked_for: str  # what the clarification asks for: patient, side, payer
    iteration_count: int
    confidence_score: float
    confidence: dict[str, Any]
    final_response: str
    error: str | None
    routing_decision: str  # pass, missing, ambiguous, partial, out_of_scope
    is_partial: bool
    insufficient_documentation_flags: list[str]
    tool_trace: list[dict[str, Any]]
    extracted_patient_identifier: dict[str, Any]
    messages: list[dict[str, str]]
    clinical_context: dict[str, Any]  # across turns: patient, documents (digests), payer
    turn: str
    todo: list[str]
    told: str  # what the last step did, in words
    files: list[Reading]
    failed_pages: list[dict[str, Any]]
    want: Wanted
    given_patient: Person | None
    patient: Person | None
    papers: list[Document]  # made by the turn: interactions
    notes: list[str]  # told with the answer
    criteria: list[Judged]
    policy: Policy | None
    payer: str
    contradictions: list[Contradiction]
    risk: Risk | None
    missing: list[str]
    grave: list[str]
    open_checks: list[str]
    as_of: str  # of a kept chart; "" of a live one
    ledger_ids: list[int]
    why_escalate: list[str]
    path: list[str]
    calls: list[dict[str, Any]]


@dataclass
class Surroundings:
    """What the nodes use."""

    settings: Settings
    llm: Guarded
    store: KeptStore
    knowledge: Knowledge
    reader: Reader
    ledger: "Ledger"
    shelf: Shelf
    thread: str
    actor: str
    charts: dict[str, Chart | None] = field(default_factory=dict)

    def chart(self, person: Person | None) -> Chart | None:
        """The patient's chart, read once a turn; None where there is none."""
        if not person or not person["id"]:
            return None
        if person["id"] not in self.charts:
            self.charts[person["id"]] = self.store.chart(person["id"])
        return self.charts[person["id"]]


def router(state: RcmState, runtime: Runtime[Surroundings]) -> RcmState:
    """Judge the question alone; or take up the work that a clarification interrupted."""
    around, message, path = runtime.context, state["message"], [*state.get("path", []), "router"]
    if state.get("pending_user_input") and (answered := _answered(state, around)):
        return {**answered, "path": path, "refused": False}
    intent = intent_of(message, around.llm, around.reader)[0]
    if intent == "OUT_OF_SCOPE":  # nothing else changes: what waits goes on waiting
        return {"refused": True, "routing_decision": "out_of_scope", "path": path, "told": "out of scope"}
    want = wanted(message, reader=around.reader, drugs=load_drug_names(), store=cast(RecordStore, around.store))
    return {
        "input_query": message, "query_intent": intent, "refused": False, "extractions": [], "audit_results": [],
        "pending_user_input": False, "clarification_needed": "", "clarification_response": "", "options": [],
        "asked_for": "", "iteration_count": 0, "confidence_score": 0.0, "confidence": {}, "final_response": "",
        "error": None, "routing_decision": "", "is_partial": False, "insufficient_documentation_flags": [],
        "tool_trace": [], "extracted_patient_identifier": {}, "failed_pages": [], "want": want, "patient": None,
        "papers": [], "notes": [], "criteria": [], "policy": None, "payer": "", "contradictions": [], "risk": None,
        "missing": [], "grave": [], "open_checks": [], "as_of": "", "ledger_ids": [], "why_escalate": [],
        "documents_processed": [], "path": path, "told": intent, "todo": ["pages", "identify", "chart", "policy", "gate"],
    }  # fmt: skip


def _answered(state: RcmState, around: Surroundings) -> RcmState | None:
    """The work taken up with what a clarification's answer says; None where the message is no answer."""
    options, message = state["options"], state["message"]
    asked = Clarification(
        kind="patient", question=state["clarification_needed"], tool="", args={}, missing=[],
        options=[{"id": one["id"], "label": one["label"]} for one in options],
    )  # fmt: skip
    chosen = next((one for one in options if one["id"] == read_answer(message, asked)), None)
    update = RcmState(pending_user_input=False, clarification_response=message, routing_decision="", told="answered")
    if chosen and state["asked_for"] == "side":
        return {**update, "want": {**state["want"], "side": chosen["id"]}, "todo": ["policy"]}
    if chosen and state["asked_for"] == "payer":
        return {**update, "payer": chosen["id"]}
    if chosen:
        return {**update, "given_patient": chosen["person"]}
    if state["asked_for"] == "patient":
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


def _pages(state: RcmState, around: Surroundings) -> RcmState:
    at = next((at for at, file in enumerate(state["files"]) if file["next"]), None)
    if at is None:
        return {"files": state["files"], "told": "nothing to read"}
    file = state["files"][at]
    page = around.shelf.read(file)
    number = page["number"]
    done = Reading(**{**file, "next": number + 1 if number < file["pages"] else 0})  # type: ignore[typeddict-item]
    failed = [{"document": file["name"], "page": number, "why": page["failed"]}] if page["failed"] else []
    return {
        "files": [*state["files"][:at], done, *state["files"][at + 1 :]],
        "failed_pages": [*state["failed_pages"], *failed],
        "told": f"page {number} of {file['pages']} of {file['name']}",
    }


def _identify(state: RcmState, around: Surroundings) -> RcmState:
    from docgemma.rcm.header import identity_of

    before = state.get("clinical_context") or {}
    new = around.shelf.documents([file["digest"] for file in state["files"]])
    papers = {document["digest"]: everyone(identity_of(document)) for document in new}
    told = [paper for people in papers.values() for paper in people]
    chosen, needed = state.get("given_patient"), _needs_patient(state)
    if chosen:
        person: Person | None = chosen
    elif needed or state["want"]["patients"] or papers:
        found = settle(state["want"]["patients"], told, cast(RecordStore, around.store), before.get("patient"))
        if found.person is None and needed:
            if around.store.fault:  # whoever could not be looked up is not unknown
                raise around.store.fault
            return _asking("patient", found.question, _choices(found.options))
        person = found.person
        if person and person == before.get("patient") and not (papers or state["want"]["patients"]):
            if not fits_pronoun(state["input_query"], person, cast(RecordStore, around.store)):
                said = f"The open patient is {person['label']}. Whom do you mean? Give a name and a birth date, or say yes."
                return _asking("patient", said, _choices([person]))
    else:
        person = None
    notes, mine = list[str](), list[str]()
    for document in new:
        speaks_of = papers[document["digest"]]
        if person and all(differs(paper, person) for paper in speaks_of):
            notes.append(f"{document['name']} speaks of {shown(speaks_of[0])} and was not used.")
            continue
        if person and not speaks_of[0]["name"]:
            notes.append(f"{document['name']} does not say whose it is.")
        notes += [f"{document['name']} also speaks of {shown(one)}; those pages were not used."
                  for one in speaks_of if person and one["name"] and differs(one, person)]  # fmt: skip
        mine.append(document["digest"])
    want = state["want"]
    if not want["drugs"] and state["query_intent"] in ("SAFETY_CHECK", "POLICY_CHECK"):  # the one that is requested
        asked = [
            found.name for text in _requested(around.shelf.documents(mine)) for found in load_drug_names().find(text)
        ]
        want = {**want, "drugs": list(dict.fromkeys(asked))[:1]}
    same = person is not None and person == before.get("patient")
    kept = [digest for digest in before.get("documents", []) if same and digest not in mine]
    payer = next((one["payer"] for digest in mine for one in papers[digest] if one["payer"]), "")
    context = {"patient": person or before.get("patient"), "documents": [*kept, *mine] if person else before.get("documents", []),
               "payer": payer or (before.get("payer", "") if same else "")}  # fmt: skip
    return {
        "want": want, "patient": person, "notes": [*state["notes"], *notes], "clinical_context": context, "given_patient": None,
        "extracted_patient_identifier": {"type": "name", "value": person["label"] if person else "", "ambiguous": False},
        "documents_processed": mine or kept, "payer": state["payer"] or state["want"]["payer"] or context["payer"],
        "told": "patient settled",
    }  # fmt: skip


def _choices(people: Sequence[Person]) -> list[dict[str, Any]]:
    return [
        {"id": one["id"] or f"document-{at}", "label": one["label"], "person": one} for at, one in enumerate(people)
    ]


def _needs_patient(state: RcmState) -> bool:
    """Whether the question cannot be answered without a patient: drugs and policies can be asked about alone."""
    intent, want = state["query_intent"], state["want"]
    if want["patients"] or state["files"]:
        return True
    if (state.get("clinical_context") or {}).get("patient"):
        return True
    by_payer = intent in ("DENIAL_RISK", "POLICY_CHECK") and bool(want["payer"])
    return not (by_payer or (intent == "INTERACTIONS" and len(want["drugs"]) > 1))


def _chart(state: RcmState, around: Surroundings) -> RcmState:
    """Read the chart, and from it what the intent asks for; without a chart that is said."""
    person, want, intent = state["patient"], state["want"], state["query_intent"]
    notes, trace, papers, claims = list(state["notes"]), list(state["tool_trace"]), list[Document](), list[Claim]()
    try:
        chart = around.chart(person)
    except StoreError as error:
        if not state["documents_processed"]:
            raise
        chart = None
        notes.append(f"Live data unavailable: the chart could not be read ({error}).")
    if chart:
        trace.append({"name": "get_patient_chart", "ok": True, "source": around.store.name})
        claims = chart_claims(chart, CHART_KINDS[intent])
    elif person and not person["id"]:
        notes.append(
            f"No chart of {person['label']} was found in the record; what follows rests on the documents alone."
        )
    if around.store.as_of:
        notes.append(f"Live data unavailable (chart as of {around.store.as_of}).")
    update = RcmState(as_of=around.store.as_of, told="chart read" if chart else "no chart")
    if intent in ("INTERACTIONS", "GENERAL_CLINICAL") and (chart or want["drugs"]):
        active = [one["name"] for one in _active(chart)] if chart and not len(want["drugs"]) > 1 else []
        document, ranks, unknown = evidence.interactions([*want["drugs"], *active], around.knowledge)
        papers.append(document)
        claims += evidence.claims_of(document, "interaction")
        update["grave"] = [
            page["text"]
            for page, rank in zip(document["pages"], ranks, strict=True)
            if rank in ("contraindicated", "major")
        ]
        update["open_checks"] = unknown
        trace.append({"name": "check_drug_interactions", "ok": True, "source": document["name"]})
    documents = around.shelf.documents(state["documents_processed"])
    if documents:
        trace += [{"name": "pdf_extractor", "ok": True, "source": one["name"]} for one in documents]
        claims += evidence.from_documents(intent, state["input_query"], documents)
    return {**update, "extractions": claims, "papers": papers, "notes": notes, "tool_trace": trace}


def _policy(state: RcmState, around: Surroundings) -> RcmState:
    """The payer's policy, its criteria judged, what the request lacks, and how such requests fared."""
    if state["query_intent"] not in ("POLICY_CHECK", "DENIAL_RISK"):
        return {"told": "no policy asked for"}
    from docgemma.rcm.criteria import judge
    from docgemma.rcm.denials import analyze
    from docgemma.rcm.policies import payers

    documents = _documents(state, around)
    if not state["payer"]:
        choices = [{"id": payer, "label": payer} for payer in payers()]
        return {**_asking("payer", "Whose policy? Neither the question nor a document names the payer.", choices),
                "todo": ["policy", "gate"]}  # fmt: skip
    requested = _requested(documents)
    asked = [
        state["input_query"],
        *(requested if speaks_only_of(state["input_query"], requested, state["want"]) else []),
    ]
    index = policy_index(around.settings.qdrant_url or "")
    policy = next(filter(None, (index.search(state["payer"], one) for one in asked)), None)
    trace = [*state["tool_trace"], {"name": "policy_search", "ok": policy is not None, "source": state["payer"]}]
    notes = [*state["notes"], index.fallback] if index.fallback else state["notes"]
    if policy is None:
        return {
            "notes": notes,
            "policy": None,
            "criteria": [],
            "tool_trace": trace,
            "error": NO_POLICY,
            "told": NO_POLICY,
        }
    if not documents:  # what the payer asks for, and how such requests fare; nothing is judged
        risk = analyze(state["payer"], policy["procedures"][0]["name"], [])
        return {"notes": notes, "policy": policy, "risk": risk, "tool_trace": trace, "told": f"policy {policy['id']}"}
    side = {"both": "bilateral"}.get(state["want"]["side"], state["want"]["side"])
    around_model = around.llm if around.llm.profile != "edge" else None
    settled = [one for one in state["criteria"] if one["verdict"] != "NOT DOCUMENTED"]
    still = cast(
        Policy,
        {**policy, "criteria": [one for one in policy["criteria"] if one["id"] not in {s["id"] for s in settled}]},
    )
    who = _asked_identity(state)
    try:
        judged, claims = judge(still, documents, around_model, side=side, today=date.today(), asked=who)
    except ModelError:  # no model answers: code decides alone, and that is told
        judged, claims = judge(still, documents, None, side=side, today=date.today(), asked=who)
    by_id = {one["id"]: one for one in [*settled, *judged]}
    criteria = [by_id[one["id"]] for one in policy["criteria"]]
    before = [claim for claim in state["extractions"] if claim.get("criterion") in {one["id"] for one in settled}]
    others = [claim for claim in state["extractions"] if "criterion" not in claim]
    missing = evidence.lacking(policy, documents, " ".join(asked)) if state["documents_processed"] else []
    lacks = [one["text"] for one in criteria if one["verdict"] != "MET"]
    risk = analyze(state["payer"], policy["procedures"][0]["name"], lacks)
    trace += [{"name": "denial_analyzer", "ok": risk["share"] is not None, "source": "synthetic history"}]
    return {
        "notes": notes, "policy": policy, "criteria": criteria, "extractions": [*others, *before, *claims], "missing": missing, "risk": risk,
        "tool_trace": trace, "told": f"policy {policy['id']}",
    }  # fmt: skip


def _gate(state: RcmState, around: Surroundings) -> RcmState:
    """The safety gate of orders, for a drug that is asked about."""
    drugs, chart = state["want"]["drugs"], around.chart(state["patient"])
    if not drugs or state["query_intent"] not in ("SAFETY_CHECK", "POLICY_CHECK") or not state["patient"]:
        return {"told": "no drug to check"}
    findings = [one for drug in drugs for one in evidence.gate(drug, chart, around.knowledge, around.settings)]
    trace = [*state["tool_trace"], {"name": "check_drug_safety", "ok": True, "source": "safety gate"}]
    return {
        "grave": evidence.grave(findings),
        "open_checks": evidence.unchecked(findings),
        "tool_trace": trace,
        "told": "gate",
    }


STEPS: dict[str, Callable[[RcmState, Surroundings], RcmState]] = {
    "pages": _pages, "identify": _identify, "chart": _chart, "policy": _policy, "gate": _gate,
}  # fmt: skip


def auditor(state: RcmState, runtime: Runtime[Surroundings]) -> RcmState:
    """Verify every claim; decide whether more is read, a person is asked, or it is answered."""
    from docgemma.rcm.audit import confidence, contradictions, escalation, insufficient, verify
    from docgemma.rcm.sides import sides

    around, who = runtime.context, _asked_identity(state)
    documents = _documents(state, around, everything=True)
    audited = [verify(claim, documents, asked=who) for claim in state["extractions"]]
    found = contradictions(
        [one for one in documents if one["digest"] in state["documents_processed"]], question=state["input_query"],
        drug=next(iter(state["want"]["drugs"]), ""), drugs=load_drug_names(), claims=audited, today=date.today(),
    ) if state["documents_processed"] else []  # fmt: skip
    count, path = state["iteration_count"], [*state["path"], "auditor"]
    apart = [one for one in found if _apart(sides(one["one"]["quote"]), sides(one["other"]["quote"]))]
    update = RcmState(
        extractions=audited, contradictions=found, iteration_count=count + 1, path=path, told="audited",
        audit_results=[{key: claim[key] for key in ("document", "page", "section", "verified")} for claim in audited],
    )  # fmt: skip
    if apart and state["asked_for"] != "side" and state["query_intent"] == "POLICY_CHECK":
        said = f"The sides do not agree ({apart[0]['what']}). Which side is the request for?"
        return {**update, **_asking("side", said, [{"id": one, "label": one} for one in ("left", "right", "both")])}
    gaps = insufficient(state["criteria"])
    if (
        gaps
        and count + 1 < MAX_LOOPS
        and len(_documents({**state, "iteration_count": count + 1}, around)) > len(_documents(state, around))
    ):
        return {**update, "routing_decision": "missing", "todo": ["policy"], "told": "wider evidence"}
    partial = bool(gaps or state["failed_pages"])
    stated = len([claim for claim in audited if claim["verified"]])
    sure = confidence(audited, state["criteria"], None, stated)
    ranks = ["contraindicated"] if state["grave"] else []
    why = escalation(state["criteria"], found, ranks, sure["score"], partial)
    why += [state["error"]] if state["error"] else []
    why += [note for note in state["notes"] if "does not say whose" in note or "Live data" in note]
    why += [f"{one['document']}, page {one['page']}: {one['why']}" for one in state["failed_pages"]]
    why += [f"Could not be checked: {one}" for one in state["open_checks"]]
    why = list(dict.fromkeys(why))
    return {
        **update, "routing_decision": "partial" if partial else "pass", "is_partial": partial, "why_escalate": why,
        "insufficient_documentation_flags": gaps, "confidence_score": sure["score"], "confidence": sure,
    }  # fmt: skip


def clarification(state: RcmState) -> RcmState:
    """Ask a person; everything is kept until they answer."""
    return {
        "pending_user_input": True,
        "path": [*state["path"], "clarification"],
        "final_response": state["clarification_needed"],
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
        row = LedgerRow(
            patient_id=who[:64], session_id=around.thread, verbatim_quote=claim["quote"], source_document=claim["document"],
            page_number=claim["page"], policy_id=state["policy"]["id"] if state["policy"] else "",
            confidence_score=round(state["confidence_score"] * 100, 2), auditor_result="ESCALATED" if state["why_escalate"] else "PASS",
        )  # fmt: skip
        ids.append(
            around.ledger.write(row, f"{around.thread}:{state['turn']}:{hashlib.sha256(said.encode()).hexdigest()}")
        )
    trace = (
        [*state["tool_trace"], {"name": "evidence_ledger_write", "ok": True, "source": f"{len(ids)} rows"}]
        if ids
        else state["tool_trace"]
    )
    return {
        "ledger_ids": ids,
        "path": [*state["path"], "ledger"],
        "tool_trace": trace,
        "told": f"{len(ids)} quotes written",
    }


def output(state: RcmState) -> RcmState:
    """The answer, filtered by intent, with its disclaimer; or the refusal, word for word."""
    path = [*state["path"], "output"]
    if state["refused"]:
        return {"path": path, "final_response": REFUSAL, "told": "refused"}
    text = compose(cast(dict[str, Any], state))
    said = [{"user": state["input_query"], "assistant": text}]
    return {
        "path": path,
        "final_response": text,
        "messages": [*state.get("messages", []), *said][-KEPT:],
        "told": "answered",
    }


@lru_cache(maxsize=2)
def policy_index(url: str) -> "PolicyIndex":
    """The index of the policies, built once a process."""
    from docgemma.rcm.policies import PolicyIndex

    return PolicyIndex(url)


def _asking(what: str, question: str, options: Sequence[dict[str, Any]]) -> RcmState:
    return {"routing_decision": "ambiguous", "asked_for": what, "clarification_needed": question, "options": list(options),
            "told": f"asks for the {what}", "todo": _after(what)}  # fmt: skip


def _after(what: str) -> list[str]:
    """What is left to do once a clarification is answered."""
    return {"patient": ["identify", "chart", "policy", "gate"], "payer": ["policy", "gate"], "side": ["policy"]}[what]


def _active(chart: Chart) -> list[dict[str, Any]]:
    from docgemma.ehr.facts import medication

    return [one for one in map(medication, chart.medications) if one["active"]]


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one and other) and not one & other


def _asked_identity(state: RcmState) -> Identity | None:
    person = state["patient"]
    return Identity(name=person["name"], birth_date=person["birth_date"], member_id="", payer="") if person else None


def _requested(documents: Sequence[Document]) -> list[str]:
    """What the documents request, in their words: sections headed so, then lines that say so; a policy is looked for by
    them."""
    pages = [page for document in documents for page in document["pages"]]
    headed = [
        " ".join(page["text"][part["start"] : part["end"]].split())[:400]
        for page in pages for part in page["sections"] if "request" in part["title"].casefold()
    ]  # fmt: skip
    lines = [line for page in pages for line in page["text"].splitlines() if "request" in line.casefold()]
    return [*headed, *lines][:REQUESTED]


def _documents(state: RcmState, around: Surroundings, everything: bool = False) -> list[Document]:
    """What the criteria are judged on, wider with each review; everything that a claim may quote."""
    width = WIDTHS if everything else state["iteration_count"]
    found = around.shelf.documents(state["documents_processed"])
    chart = around.chart(state["patient"])
    if chart and (width > 0 or not found):
        found = [*found, chart_document(chart)]
    if width > 1:
        earlier = (state.get("clinical_context") or {}).get("documents", [])
        found += around.shelf.documents([one for one in earlier if one not in state["documents_processed"]])
    return [*found, *state["papers"]] if everything else found


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
    actor: str = "clinician", on_step: Callable[[dict[str, Any]], object] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One turn, or the rest of one that was cut off with the same question: the contract's JSON of `rcm ask`.

    Args:
        thread: a conversation; one that is not there is begun under this id.
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
    guarded, kept, shelf = (
        Guarded(llm, scrubber, settings),
        KeptStore(store, settings.home / "rcm-charts.sqlite"),
        Shelf(settings, thread),
    )
    around = Surroundings(settings, guarded, kept, knowledge, reader, ledger, shelf, thread, actor)
    app = build().compile(checkpointer=memory)
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION_LIMIT}
    try:
        stored = app.get_state(config)
        cut_off = bool(stored.tasks) and stored.values.get("message") == message
        given: RcmState | None = None if cut_off else _turn(message, stored.values, pdf, patient, around)
        for update in app.stream(given, config, context=around, stream_mode="updates", durability="sync"):
            for node, changed in update.items():
                tell({"node": node, "detail": (changed or {}).get("told", "")})
        state = cast(RcmState, app.get_state(config).values)
    finally:
        kept.close()
        guarded.close()
    return report(state, thread, guarded, perf_counter() - began)


def _turn(
    message: str, stored: dict[str, Any], pdf: Sequence[Path], patient: str | None, around: Surroundings
) -> RcmState:
    """What a new message brings; a clarification that waits keeps the files of its question."""
    turn = RcmState(message=message, path=[], calls=[])
    if pdf or not stored.get("pending_user_input"):
        turn |= {"files": [around.shelf.begin(path) for path in pdf], "turn": uuid.uuid4().hex, "given_patient": None}
    if patient is not None:
        match = around.store.patient(patient.strip())
        if match is None:
            raise UnknownPatientError(f"There is no patient with the id {patient!r}.", hint="docgemma ehr search NAME")
        turn["given_patient"] = Person(id=match.id, name=match.name, birth_date=match.birth_date, label=match.label)
    return turn


def report(state: RcmState, thread: str, llm: Guarded, seconds: float) -> dict[str, Any]:
    """The turn as the contract's JSON."""
    refused, asks = (
        state["refused"],
        state["pending_user_input"] and not state["refused"] if "pending_user_input" in state else False,
    )
    status = "refused" if refused else "needs_clarification" if asks else "answered"
    full = status == "answered"
    claims = [claim for claim in state["extractions"] if claim["verified"]] if full else []
    down = [f"The model {name} did not answer; the next one, or code alone, decided." for name in llm.down]
    return {
        "thread": thread, "model": llm.name, "status": status, "answer": state["final_response"],
        "intent": "OUT_OF_SCOPE" if refused else state["query_intent"], "path": state["path"],
        "tools": state["tool_trace"] if full else [], "claims": claims, "criteria": state["criteria"] if full else [],
        "policy": _brief(state["policy"]) if full else None, "contradictions": state["contradictions"] if full else [],
        "risk": state["risk"] if full else None, "missing": state["missing"] if full else [],
        "ledger_ids": state["ledger_ids"] if full else [], "escalate": full and bool(state["why_escalate"] or down),
        "why_escalate": [*state["why_escalate"], *down] if full else [],
        "confidence": {"score": state["confidence_score"], "parts": state["confidence"].get("parts", {}),
                       "weights": state["confidence"].get("weights", {})} if full else None,
        "is_partial": full and state["is_partial"], "failed_pages": [] if refused else state["failed_pages"],
        "insufficient": state["insufficient_documentation_flags"] if full else [],
        "notes": state["notes"] if full else [], "live": refused or not state["as_of"], "as_of": "" if refused else state["as_of"],
        "patient": None if refused else state["patient"], "disclaimer": DISCLAIMER,
        "options": [{"id": one["id"], "label": one["label"]} for one in state["options"]] if asks else [],
        "llm_calls": len(llm.calls), "tokens": {"prompt": sum(one["prompt_tokens"] for one in llm.calls),
                                                "completion": sum(one["completion_tokens"] for one in llm.calls)},
        "seconds": round(seconds, 3),
    }  # fmt: skip


def _brief(policy: Policy | None) -> dict[str, Any] | None:
    return {key: policy[key] for key in ("id", "payer", "title", "effective")} if policy else None  # type: ignore[literal-required]
