"""Traces of a turn, scrubbed, as OpenTelemetry spans to a collector or to LangSmith, where the usual variables say so.

LangGraph would send states unscrubbed by itself: `docgemma.quiet` forbids it.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx

from docgemma.errors import kind_and_place
from docgemma.settings import Settings

SEND_S = 5.0
TOLD = ("model", "status", "intent", "escalate", "is_partial", "llm_calls", "seconds")
CITED = ("quote", "document", "page", "section")
log = logging.getLogger(__name__)


def trace(
    settings: Settings, scrub: Callable[[str], str], question: str, result: dict[str, Any],
    steps: Sequence[dict[str, Any]],
) -> int:  # fmt: skip
    """Send one turn: question and answer scrubbed, and of each node its name and seconds.

    Args:
        scrub: `Scrubber().scrub` of the turn's session. Where it fails, nothing is sent.
        result: what `graphs.rcm.run` returns.
        steps: {"node", "seconds"}, in the order in which they ran.

    Returns:
        How many receivers took it. One that does not costs a line in the log, and never the answer.
    """
    to = list[tuple[str, dict[str, str]]]()
    if settings.langsmith_tracing and settings.langsmith_api_key:
        to.append((f"{settings.langsmith_endpoint.rstrip('/')}/otel", {"x-api-key": settings.langsmith_api_key}))
    if settings.otel_exporter_otlp_endpoint:
        to.append((settings.otel_exporter_otlp_endpoint.rstrip("/"), {}))
    if not to:
        return 0
    try:
        said = {"input.value": scrub(question), "output.value": scrub(result.get("answer") or "")}
    except Exception as error:  # whatever it is: what could not be scrubbed stays here
        log.error("no trace was sent, scrubbing failed: %s", kind_and_place(error))
        return 0
    body, taken = _spans({**metrics(result), **said}, float(result.get("seconds") or 0), steps), 0
    for address, headers in to:
        try:
            httpx.post(f"{address}/v1/traces", json=body, headers=headers, timeout=SEND_S).raise_for_status()
            taken += 1
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.warning("a trace was not taken: %s", kind_and_place(error))
    return taken


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


def _spans(told: dict[str, Any], seconds: float, steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The turn and each of its steps in OTLP's JSON."""
    number, turn = uuid.uuid4().hex, uuid.uuid4().hex[:16]
    at = datetime.now(UTC).timestamp() - seconds
    spans = [_span(number, turn, "", "docgemma rcm", at, seconds, told)]
    for step in steps:
        spans.append(_span(number, uuid.uuid4().hex[:16], turn, step["node"], at, step["seconds"], {}))
        at += step["seconds"]
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "docgemma"}}]}
    return {
        "resourceSpans": [{"resource": service, "scopeSpans": [{"scope": {"name": "docgemma.rcm"}, "spans": spans}]}]
    }


def _span(
    trace_id: str, own: str, parent: str, name: str, start: float, seconds: float, told: dict[str, Any]
) -> dict[str, Any]:
    return {
        "traceId": trace_id, "spanId": own, "parentSpanId": parent, "name": name, "kind": 1,
        "startTimeUnixNano": str(int(start * 1e9)), "endTimeUnixNano": str(int((start + seconds) * 1e9)),
        "attributes": [{"key": key if "." in key else f"rcm.{key}", "value": {"stringValue": str(value)}}
                       for key, value in told.items()],
    }  # fmt: skip
