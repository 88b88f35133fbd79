"""A turn as JSON, and in words: the verdict first, then only what the intent asks for, each line with its place."""

from collections import Counter
from typing import Any

from docgemma.rcm.models import Guarded
from docgemma.rcm.records import DISCLAIMER, NO_POLICY, REVIEW, Claim, Intent, Kind
from docgemma.rcm.sentences import lists
from docgemma.rcm.turn import RcmState

ALL: tuple[Kind, ...] = ("allergy", "medication", "problem", "result", "note")
CHART_KINDS: dict[Intent, tuple[Kind, ...]] = {
    "MEDICATIONS": ("medication",), "ALLERGIES": ("allergy",), "INTERACTIONS": (),
    "SAFETY_CHECK": ("allergy", "medication"), "GENERAL_CLINICAL": ALL,
    "POLICY_CHECK": (), "DENIAL_RISK": (), "OUT_OF_SCOPE": (),
}  # fmt: skip


def compose(state: dict[str, Any]) -> str:
    """The answer of a turn, with the disclaimer at its end. Only verified claims stand in it."""
    claims = [claim for claim in state["extractions"] if claim["verified"]]
    person = state["patient"]
    lines = [f"{person['label']}:"] if person else []
    stop = state["grave"]  # what was found is for a physician, and nothing is recommended
    if stop:
        lines.append(f"{REVIEW}. A finding of severity HIGH or CONTRAINDICATED stops this request:")
        lines += [f"- {one}" for one in stop]
    if not stop or state["query_intent"] == "GENERAL_CLINICAL":  # a grave pair is told; it hides no other entry
        lines += _verdict(state, [claim for claim in claims if not (stop and claim["kind"] == "interaction")])
    lines += [f"Note: {note}" for note in state["notes"]]
    lines += [f"Could not be checked: {one}" for one in state["open_checks"]]
    lines += [f"Not readable: {one['document']}, page {one['page']}: {one['why']}" for one in state["failed_pages"]]
    lines += _contradicted(state)
    if state["ledger_ids"]:
        lines.append("Ledger: " + ", ".join(f"rcm_evidence_ledger#{one}" for one in dict.fromkeys(state["ledger_ids"])))
    if state["why_escalate"]:
        lines += ["For a human reviewer:", *(f"- {why}" for why in state["why_escalate"])]
    return "\n".join([*lines, "", DISCLAIMER])


def _verdict(state: dict[str, Any], claims: list[Claim]) -> list[str]:
    intent = state["query_intent"]
    if intent in ("POLICY_CHECK", "DENIAL_RISK"):
        return _checked(state, claims)
    if intent == "SAFETY_CHECK":
        drugs = ", ".join(state["want"]["drugs"])
        found = f"No grave finding against {drugs} among what could be checked."
        return [found if drugs else "No drug is named in the question.", *_listed(claims)]
    there = {claim["kind"] for claim in claims}
    asked = state["want"]["lists"] if intent in state["want"]["lists"] else []
    nothing = lists("answers")["nothing"]
    lacking = [nothing[one] for one in asked if not there & set(CHART_KINDS[one])]
    return [*_listed(claims), *lacking] or [nothing.get(intent, "Nothing about this is recorded.")]


def _checked(state: dict[str, Any], claims: list[Claim]) -> list[str]:
    policy = state["policy"]
    if policy is None:
        none = f"{NO_POLICY}: no policy of {state['payer']} for what is asked is indexed."
        return [f"{none} Look it up with the payer; nothing is judged by another policy."]
    risk = _risk(state)
    if not state["criteria"]:  # asked without a patient
        needs = [f"{policy['title']} ({policy['id']}, {policy['payer']}, effective {policy['effective']}) asks for:",
                 *(f"- {one['id']} {one['text']}" for one in policy["criteria"]),
                 f"The request must hold: {', '.join(policy['request_needs'])}."]  # fmt: skip
        return [*risk, *needs] if state["query_intent"] == "DENIAL_RISK" else [*needs, *risk]
    count, total = Counter(one["verdict"] for one in state["criteria"]), len(state["criteria"])
    head = "All criteria are met" if count["MET"] == total else f"{count['MET']} of {total} criteria are met"
    if count["NOT MET"]:
        head += f", {count['NOT MET']} not met"
    if count["NOT DOCUMENTED"]:
        head += f", {count['NOT DOCUMENTED']} not documented (Insufficient Documentation)"
    lines = [f"{head}: {policy['title']} ({policy['id']}, {policy['payer']})."]
    for one in state["criteria"]:
        where = f' "{one["quote"]}" [{one["document"]}, page {one["page"]}, {one["section"]}]' if one["quote"] else ""
        lines.append(f"- {one['verdict']}: {one['id']} {one['text']}{where}")
    lines += ["The request lacks:", *(f"- {one}" for one in state["missing"])] if state["missing"] else []
    return [*risk, *lines] if state["query_intent"] == "DENIAL_RISK" else [*lines, *risk]


def _risk(state: dict[str, Any]) -> list[str]:
    risk = state["risk"]
    if not risk:
        return []
    if risk["share"] is None:
        return [f"Denial risk unknown. {risk.get('told', '')}".strip()]
    low_high = f"95 % interval {risk['low']:.0%} to {risk['high']:.0%}"
    share = f"{risk['share']:.0%} of {risk['n']} comparable requests were denied ({low_high})"
    return [f"Denial risk {risk['level']}: {share}, in a synthetic history. {risk.get('told', '')}".strip(),
            *(f"- {one['reason']}: {one['share']:.0%}. Add: {one['add']}" for one in risk["reasons"][:3])]  # fmt: skip


def _contradicted(state: dict[str, Any]) -> list[str]:
    return [
        f'Contradiction ({one["what"]}): "{one["one"]["quote"]}" [{_place(one["one"])}] against '
        f'"{one["other"]["quote"]}" [{_place(one["other"])}]'
        for one in state["contradictions"]
    ]


def _listed(claims: list[Claim]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for claim in claims:
        named = f"{lists('answers')['headings'][claim['kind']]}:"
        groups.setdefault(named, [named]).append(f"- {claim['quote']} [{_place(claim)}]")
    return [line for lines in groups.values() for line in lines]


def _place(claim: Claim) -> str:
    return f"{claim['document']}, page {claim['page']}, {claim['section']}"


def report(state: RcmState, thread: str, llm: Guarded, seconds: float) -> dict[str, Any]:
    """The turn as the contract's JSON, as `docgemma rcm ask` prints it."""
    refused = state["refused"]
    asks = not refused and state.get("pending_user_input", False)
    status = "refused" if refused else "needs_clarification" if asks else "answered"
    full = status == "answered"
    claims = [claim for claim in state["extractions"] if claim["verified"]] if full else []
    policy: Any = state["policy"] if full else None
    live = refused or not any(note.startswith("Live data unavailable") for note in state["notes"])
    return {
        "thread": thread, "model": llm.name, "status": status, "answer": state["final_response"],
        "intent": "OUT_OF_SCOPE" if refused else state["query_intent"], "path": state["path"],
        "tools": state["tool_trace"] if full else [], "claims": claims, "criteria": state["criteria"] if full else [],
        "policy": policy and {key: policy[key] for key in ("id", "payer", "title", "effective")},
        "contradictions": state["contradictions"] if full else [],
        "risk": state["risk"] if full else None, "missing": state["missing"] if full else [],
        "ledger_ids": state["ledger_ids"] if full else [], "escalate": full and bool(state["why_escalate"]),
        "why_escalate": state["why_escalate"] if full else [],
        "confidence": state["confidence"] if full else None,
        "is_partial": full and state["is_partial"], "failed_pages": [] if refused else state["failed_pages"],
        "insufficient": state["insufficient_documentation_flags"] if full else [],
        "notes": state["notes"] if full else [], "live": live,
        "as_of": "" if refused else state["as_of"],
        "patient": None if refused else state["patient"], "disclaimer": DISCLAIMER,
        "options": [{"id": one["id"], "label": one["label"]} for one in state["options"]] if asks else [],
        "llm_calls": len(llm.calls), "tokens": {"prompt": sum(one["prompt_tokens"] for one in llm.calls),
                                                "completion": sum(one["completion_tokens"] for one in llm.calls)},
        "seconds": round(seconds, 3),
    }  # fmt: skip
