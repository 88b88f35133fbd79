"""The extractor's steps: a page of a document, who the patient is, the chart, the payer's policy, the safety gate."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, cast

from docgemma.ehr.base import RecordStore
from docgemma.ehr.facts import medication
from docgemma.errors import ModelError, StoreError
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.rcm import evidence
from docgemma.rcm.chart import as_document, chart_claims, claims_of
from docgemma.rcm.compose import CHART_KINDS
from docgemma.rcm.criteria import judge
from docgemma.rcm.denials import analyze
from docgemma.rcm.evidence import Reading, requested_in
from docgemma.rcm.header import identities_of
from docgemma.rcm.people import differs, fits_pronoun, settle, shown, with_name
from docgemma.rcm.policies import PolicyIndex
from docgemma.rcm.policy_files import load_policies, payers
from docgemma.rcm.policy_names import called
from docgemma.rcm.records import NO_POLICY, Claim, Document, Person, Policy
from docgemma.rcm.scope import looked_for, names_service, payer_in, says_nothing
from docgemma.rcm.sentences import HEAD
from docgemma.rcm.turn import RcmState, Surroundings, asking, documents_of
from docgemma.rules.order_check import CONTRAINDICATED, MAJOR, UNCHECKED
from docgemma.text.words import names


def _pages(state: RcmState, around: Surroundings) -> RcmState:
    file = next((file for file in state["files"] if file["next"]), None)
    if file is None:
        return {"files": state["files"], "told": "nothing to read"}
    page = around.shelf.read(file)
    number = page["number"]
    done: Reading = {**file, "next": number + 1 if number < file["pages"] else 0}
    failed = [{"document": file["name"], "page": number, "why": page["failed"]}] if page["failed"] else []
    return {
        "files": [done if one is file else one for one in state["files"]],
        "failed_pages": [*state["failed_pages"], *failed],
        "told": f"page {number} of {file['pages']} of {file['name']}",
    }


def _identify(state: RcmState, around: Surroundings) -> RcmState:
    before = state.get("clinical_context") or {}
    new = around.shelf.documents([file["digest"] for file in state["files"]])
    called = [one["said"] for one in state["want"]["patients"]]
    papers = {document["digest"]: with_name(identities_of(document), document, called) for document in new}
    told = [paper for people in papers.values() for paper in people]
    chosen, needed = state.get("given_patient"), _needs_patient(state)
    person: Person | None = chosen
    if not chosen and (needed or state["want"]["patients"] or papers):
        found = settle(state["want"]["patients"], told, cast(RecordStore, around.store), before.get("patient"))
        if found.person is None and needed:
            if around.store.fault:  # whoever could not be looked up is not unknown
                raise around.store.fault
            return asking("patient", found.question, _choices(found.options))
        person = found.person
        goes_on = person and person == before.get("patient") and not (papers or state["want"]["patients"])
        if person and goes_on and says_nothing(state["input_query"], state["query_intent"], around.reader):
            return asking("question", f"What do you want to know about {person['label']}?", [])
        if person and goes_on and not fits_pronoun(state["input_query"], person, cast(RecordStore, around.store)):
            said = f"The open patient is {person['label']}. Whom do you mean? Give a name and a birth date, or say yes."
            return asking("patient", said, _choices([person]))
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
    drugs = load_drug_names()
    if not any(name in drugs for name in want["drugs"]) and state["query_intent"] == "SAFETY_CHECK":
        asked = [one.name for text in requested_in(around.shelf.documents(mine)) for one in drugs.find(text)]
        want = {**want, "drugs": list(dict.fromkeys(asked))[:1] or want["drugs"]}  # "the antibiotic" that is requested
    same = person is not None and person == before.get("patient")
    kept = [digest for digest in before.get("documents", []) if same and digest not in mine]
    payer = next((one["payer"] for digest in mine for one in papers[digest] if one.get("payer")), "")
    heads = [one["pages"][0]["text"][:HEAD] for one in new if one["digest"] in mine and one["pages"]]
    payer = payer or next(filter(None, map(payer_in, heads)), "")
    known = payer or (before.get("payer", "") if same else "")
    papers_kept = [*kept, *mine] if person else before.get("documents", [])
    context = {"patient": person or before.get("patient"), "documents": papers_kept, "payer": known}
    return {
        "want": want, "patient": person, "notes": [*state["notes"], *notes], "clinical_context": context,
        "given_patient": None, "documents_processed": mine or kept,
        "payer": state["payer"] or state["want"]["payer"] or known,
        "told": "patient settled",
    }  # fmt: skip


def _choices(people: Sequence[Person]) -> list[dict[str, Any]]:
    ids = [one["id"] or f"document-{at}" for at, one in enumerate(people)]
    return [{"id": key, "label": one["label"], "person": one} for key, one in zip(ids, people, strict=True)]


def _needs_patient(state: RcmState) -> bool:
    """Whether the question cannot be answered without a patient: drugs and policies can be asked about alone."""
    intent, want = state["query_intent"], state["want"]
    if want["patients"] or state["files"] or (state.get("clinical_context") or {}).get("patient"):
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
        also = want["lists"] if intent in want["lists"] else []
        claims = chart_claims(chart, [kind for one in dict.fromkeys([intent, *also]) for kind in CHART_KINDS[one]])
    elif person and not person["id"] and around.store.fault:  # whoever could not be looked up is not unknown
        notes.append(f"Live data unavailable: the record could not be searched ({around.store.fault}).")
    elif person and not person["id"]:
        alone = "what follows rests on the documents alone."
        notes.append(f"No chart of {person['label']} was found in the record; {alone}")
    if around.store.as_of:
        notes.append(f"Live data unavailable (chart as of {around.store.as_of}).")
    update = RcmState(as_of=around.store.as_of, told="chart read" if chart else "no chart")
    if intent in ("INTERACTIONS", "GENERAL_CLINICAL") and (chart or want["drugs"]):
        listed = map(medication, chart.medications) if chart and len(want["drugs"]) < 2 else []
        drugs = [*want["drugs"], *(one["name"] for one in listed if one["active"])]
        document, update["grave"], update["open_checks"] = evidence.interactions(drugs, around.knowledge)
        papers.append(document)
        claims += claims_of(document, "interaction")
        trace.append({"name": "check_drug_interactions", "ok": True, "source": document["name"]})
    documents = around.shelf.documents(state["documents_processed"])
    trace += [{"name": "pdf_extractor", "ok": True, "source": one["name"]} for one in documents]
    claims += evidence.from_documents(intent, state["input_query"], documents)
    return {**update, "extractions": claims, "papers": papers, "notes": notes, "tool_trace": trace}


def _policy(state: RcmState, around: Surroundings) -> RcmState:
    """The payer's policy, its criteria judged, what the request lacks, and how such requests fared."""
    if state["query_intent"] not in ("POLICY_CHECK", "DENIAL_RISK"):
        return {"told": "no policy asked for"}
    documents = documents_of(state, around)
    if not state["payer"]:
        choices = [{"id": payer, "label": payer} for payer in payers()]
        return asking("payer", "Whose policy? Neither the question nor a document names the payer.", choices)
    requested = requested_in(documents)
    asked = looked_for(state["input_query"], requested, state["want"], around.reader)
    index = policy_index(around.settings.qdrant_url or "")
    policy = next(filter(None, (index.search(state["payer"], one) for one in asked)), None)
    if not (policy or requested) and not names_service(state["input_query"], state["want"], around.reader):
        choices = [{"id": key, "label": one["title"]} for key, one in load_policies().items()
                   if one["payer"] == state["payer"]]  # fmt: skip
        return asking("service", f"Which service is asked for? {state['payer']} has policies for these.", choices)
    trace = [*state["tool_trace"], {"name": "policy_search", "ok": policy is not None, "source": state["payer"]}]
    notes = [*state["notes"], index.fallback] if index.fallback else state["notes"]
    update = RcmState(policy=policy, notes=notes, tool_trace=trace)
    if policy is None:
        return {**update, "criteria": [], "error": NO_POLICY, "told": NO_POLICY}
    update["told"], procedure = f"policy {policy['id']}", policy["procedures"][0]["name"]
    if not documents:  # what the payer asks for, in the policy's words, and how such requests fare; nothing is judged
        paper = as_document(policy["id"], [("Criteria", one["text"]) for one in policy["criteria"]])
        claims = claims_of(paper, "document")
        risk = analyze(state["payer"], procedure, [])
        return {**update, "papers": [*state["papers"], paper], "extractions": claims, "risk": risk}
    side = {"both": "bilateral"}.get(state["want"]["side"], state["want"]["side"])
    settled = {one["id"]: one for one in state["criteria"] if one["verdict"] != "NOT DOCUMENTED"}
    still = cast(Policy, {**policy, "criteria": [one for one in policy["criteria"] if one["id"] not in settled]})
    who = state["patient"]
    if who:
        around.llm.scrubber.known(names=[who["name"]], births=[who["birth_date"]])
    try:
        judged, claims = judge(still, documents, around.llm, side=side, today=date.today(), asked=who)
    except ModelError:  # no model answers: code decides alone, and that is told
        judged, claims = judge(still, documents, None, side=side, today=date.today(), asked=who)
    by_id = {**settled, **{one["id"]: one for one in judged}}
    criteria = [by_id[one["id"]] for one in policy["criteria"]]
    before = [claim for claim in state["extractions"] if claim.get("criterion") in settled]
    others = [claim for claim in state["extractions"] if "criterion" not in claim]
    missing = evidence.lacking(policy, documents, " ".join(asked)) if state["documents_processed"] else []
    risk = analyze(state["payer"], procedure, [one["text"] for one in criteria if one["verdict"] != "MET"])
    update["tool_trace"] = [*trace, {"name": "denial_analyzer", "ok": risk["share"] is not None,
                                     "source": "synthetic history"}]  # fmt: skip
    extractions = [*others, *before, *claims]
    return {**update, "criteria": criteria, "extractions": extractions, "missing": missing, "risk": risk}


def _gate(state: RcmState, around: Surroundings) -> RcmState:
    """The safety gate of orders, for a drug that is asked about."""
    drugs, chart, policy = state["want"]["drugs"], around.chart(state["patient"]), state["policy"]
    if state["query_intent"] == "POLICY_CHECK":
        asked = " ".join(requested_in(around.shelf.documents(state["documents_processed"]), headed_only=True))
        drugs = list(dict.fromkeys([*drugs, *(one.name for one in load_drug_names().find(asked))])) if chart else []
        if policy:  # "knee MRI, after naproxen": only a drug that is the policy's is requested
            known = " / ".join(called(policy))
            drugs = [name for name in drugs if names([name], known)]
    elif state["query_intent"] != "SAFETY_CHECK":
        drugs = []
    if not drugs or not state["patient"]:
        return {"told": "no drug to check"}
    findings = [one for drug in drugs for one in evidence.gate(drug, chart, around.knowledge, around.settings)]
    trace = [*state["tool_trace"], {"name": "check_drug_safety", "ok": True, "source": "safety gate"}]
    return {
        "grave": [one.text for one in sorted(findings) if one.rank in (CONTRAINDICATED, MAJOR)],
        "open_checks": [one.text for one in findings if one.rank == UNCHECKED],
        "want": {**state["want"], "drugs": drugs},
        "tool_trace": trace,
        "told": "gate",
    }


STEPS: dict[str, Callable[[RcmState, Surroundings], RcmState]] = {
    "pages": _pages, "identify": _identify, "chart": _chart, "policy": _policy, "gate": _gate,
}  # fmt: skip


@lru_cache(maxsize=2)
def policy_index(url: str) -> PolicyIndex:
    """The index of the policies, built once a process."""
    return PolicyIndex(url)
