"""Traces of a turn to LangSmith or an OpenTelemetry collector, where the usual variables name one; scrubbed, or not sent.

LangGraph would send states unscrubbed by itself once LANGSMITH_TRACING is set: `quiet()` around a run forbids it.
"""

import logging
import secrets
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from docgemma.errors import kind_and_place
from docgemma.settings import Settings

SEND_S = 5.0
CITED = ("quote", "document", "page", "section")
TOLD = ("model", "status", "intent", "escalate", "is_partial", "llm_calls", "seconds")
Step = dict[str, Any]  # "node", "seconds" and, where counted, "tokens"
log = logging.getLogger(__name__)


def quiet() -> AbstractContextManager[Any]:
    """Keep LangGraph and LangChain from tracing what runs within, also in the threads that they start."""
    from langsmith.run_helpers import tracing_context

    return tracing_context(enabled=False)


def trace(
    settings: Settings, scrub: Callable[[str], str], question: str, result: dict[str, Any], steps: Sequence[Step]
) -> int:
    """Send one turn: question and answer scrubbed, and of each node its name, seconds and tokens.

    Args:
        scrub: `Scrubber().scrub` of the turn's session. Where it fails, nothing is sent.
        result: what `graphs.rcm.run` returns; `steps` in the order in which they ran.

    Returns:
        How many receivers took it. One that does not costs a line in the log, and never the answer.
    """
    to: list[tuple[str, Callable[..., dict[str, Any]], dict[str, str]]] = []
    if settings.langsmith_tracing and settings.langsmith_api_key:
        headers = {"x-api-key": settings.langsmith_api_key}
        to.append((f"{settings.langsmith_endpoint.rstrip('/')}/runs/batch", _langsmith, headers))
    if settings.otel_exporter_otlp_endpoint:
        to.append((f"{settings.otel_exporter_otlp_endpoint.rstrip('/')}/v1/traces", _otel, {}))
    try:
        said = {"question": scrub(question), "answer": scrub(result.get("answer") or "")} if to else {}
    except Exception as error:  # whatever it is: what could not be scrubbed stays here
        log.error("no trace was sent, scrubbing failed: %s", kind_and_place(error))
        return 0
    taken = 0
    for url, body, headers in to:
        try:
            httpx.post(url, json=body(said, metrics(result), steps), headers=headers, timeout=SEND_S).raise_for_status()
            taken += 1
        except httpx.HTTPError as error:
            log.warning("a trace was not taken: %s", kind_and_place(error))
    return taken


def metrics(result: dict[str, Any]) -> dict[str, Any]:
    """What of a turn names nobody: how it went, ledger ids, and the shares of claims that are verified, and fully cited."""
    claims, told = result.get("claims") or [], {key: result.get(key) for key in TOLD}
    if claims:
        told["faithfulness"] = sum(bool(claim["verified"]) for claim in claims) / len(claims)
        told["citation_accuracy"] = sum(all(claim.get(key) for key in CITED) for claim in claims) / len(claims)
    told |= {f"tokens_{key}": count for key, count in (result.get("tokens") or {}).items()}
    told["confidence"] = (result.get("confidence") or {}).get("score")
    told["ledger_ids"] = ",".join(map(str, result.get("ledger_ids") or []))
    return {key: value for key, value in told.items() if value is not None}


def _times(told: dict[str, Any], steps: Sequence[Step]) -> list[tuple[str, datetime, datetime, dict[str, Any]]]:
    """Name, start, end and numbers of the turn, then of each step."""
    end = datetime.now(UTC)
    at = end - timedelta(seconds=float(told.get("seconds") or 0))
    spans = [("docgemma rcm", at, end, told)]
    for step in steps:
        until = at + timedelta(seconds=float(step.get("seconds") or 0))
        spans.append((step["node"], at, until, {"tokens": step["tokens"]} if "tokens" in step else {}))
        at = until
    return spans


def _langsmith(said: dict[str, str], told: dict[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """The body of its POST /runs/batch."""
    runs: list[dict[str, Any]] = []
    for name, start, end, numbers in _times(told, steps):
        own, root = str(uuid.uuid4()), runs[0] if runs else {}
        order = f"{start:%Y%m%dT%H%M%S%fZ}{own}"
        runs.append({
            "id": own, "trace_id": root.get("id", own), "name": name, "run_type": "chain",
            "dotted_order": f"{root['dotted_order']}.{order}" if root else order, "parent_run_id": root.get("id"),
            "start_time": start.isoformat(), "end_time": end.isoformat(), "extra": {"metadata": numbers},
            "inputs": {} if root else {"question": said["question"]},
            "outputs": {} if root else {"answer": said["answer"]},
        })  # fmt: skip
    return {"post": runs, "patch": []}


def _otel(said: dict[str, str], told: dict[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """OTLP over HTTP in JSON."""
    trace_id, spans = secrets.token_hex(16), list[dict[str, Any]]()
    for name, start, end, numbers in _times(told, steps):
        texts = {**numbers, **({} if spans else said)}
        spans.append({
            "traceId": trace_id, "spanId": secrets.token_hex(8), "name": name, "kind": 1,
            "startTimeUnixNano": str(int(start.timestamp() * 1e9)), "endTimeUnixNano": str(int(end.timestamp() * 1e9)),
            "attributes": [{"key": f"rcm.{key}", "value": {"stringValue": str(text)}} for key, text in texts.items()],
            **({"parentSpanId": spans[0]["spanId"]} if spans else {}),
        })  # fmt: skip
    service = [{"key": "service.name", "value": {"stringValue": "docgemma"}}]
    scope = {"scope": {"name": "docgemma.rcm"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": [scope]}]}
