"""A turn as the JSON that `docgemma rcm ask` prints."""

from typing import Any

from docgemma.rcm.models import Guarded
from docgemma.rcm.records import DISCLAIMER
from docgemma.rcm.turn import RcmState


def report(state: RcmState, thread: str, llm: Guarded, seconds: float) -> dict[str, Any]:
    """The turn as the contract's JSON."""
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
        "confidence": {"score": state["confidence_score"], "parts": state["confidence"].get("parts", {}),
                       "weights": state["confidence"].get("weights", {})} if full else None,
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
