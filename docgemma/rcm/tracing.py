"""Send the trace of a turn, scrubbed, to LangSmith, where LANGSMITH_TRACING and its key are set.

LangGraph would send states unscrubbed by itself: `docgemma.quiet` forbids it.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from docgemma.errors import kind_and_place
from docgemma.settings import Settings

SEND_S = 5.0
TOLD = ("model", "status", "intent", "escalate", "is_partial", "llm_calls", "seconds")
CITED = ("quote", "document", "page", "section")
Step = dict[str, Any]  # node, seconds
log = logging.getLogger(__name__)


def trace(
    settings: Settings, scrub: Callable[[str], str], question: str, result: dict[str, Any], steps: Sequence[Step]
) -> bool:
    """Send one turn: question and answer scrubbed, and of each node its name and seconds.

    Args:
        scrub: `Scrubber().scrub` of the turn's session. Where it fails, nothing is sent.
        result: what `graphs.rcm.run` returns.
        steps: in the order in which they ran.

    Returns:
        Whether it was taken. Where it is not, that costs a line in the log, and never the answer.
    """
    if not (settings.langsmith_tracing and settings.langsmith_api_key):
        return False
    try:
        _send(settings, scrub(question), scrub(result.get("answer") or ""), metrics(result), steps)
    except Exception as error:  # what could not be scrubbed stays here; whatever the receiver raises, the answer stands
        log.warning("no trace was sent: %s", kind_and_place(error))
        return False
    return True


def metrics(result: dict[str, Any]) -> dict[str, Any]:
    """What of a turn names nobody: how it went, ledger ids, shares of its claims that are verified and fully cited."""
    claims, told = result.get("claims") or [], {key: result.get(key) for key in TOLD}
    if claims:
        told["faithfulness"] = sum(bool(claim["verified"]) for claim in claims) / len(claims)
        told["citation_accuracy"] = sum(all(claim.get(key) for key in CITED) for claim in claims) / len(claims)
    told |= {f"tokens_{key}": count for key, count in (result.get("tokens") or {}).items()}
    told["confidence"] = (result.get("confidence") or {}).get("score")
    told["ledger_ids"] = ",".join(map(str, result.get("ledger_ids") or []))
    return {key: value for key, value in told.items() if value is not None}


def _send(settings: Settings, question: str, answer: str, told: dict[str, Any], steps: Sequence[Step]) -> None:
    """Send the turn as a run, and each step as one below it."""
    from langsmith import Client

    client = Client(
        settings.langsmith_endpoint, api_key=settings.langsmith_api_key, auto_batch_tracing=False,
        omit_traced_runtime_info=True, timeout_ms=int(SEND_S * 1000),
    )  # fmt: skip
    turn, end = uuid.uuid4(), datetime.now(UTC)
    at = end - timedelta(seconds=float(told.get("seconds") or 0))
    client.create_run(
        "docgemma rcm", {"question": question}, "chain", id=turn, outputs={"answer": answer}, start_time=at,
        end_time=end, extra={"metadata": told},
    )  # fmt: skip
    for step in steps:
        until = at + timedelta(seconds=step["seconds"])
        client.create_run(
            step["node"], {}, "chain", id=uuid.uuid4(), outputs={}, start_time=at, end_time=until,
            extra={"metadata": {"seconds": step["seconds"]}}, parent_run_id=turn,
        )  # fmt: skip
        at = until
