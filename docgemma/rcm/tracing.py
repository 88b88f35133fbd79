"""Traces of a turn, scrubbed, to LangSmith or an OpenTelemetry collector, where the usual variables name one.

LangGraph would send states unscrubbed by itself: `docgemma.quiet` forbids it.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from docgemma.errors import kind_and_place
from docgemma.settings import Settings

SEND_S = 5.0
TOLD = ("model", "status", "intent", "escalate", "is_partial", "llm_calls", "seconds")
CITED = ("quote", "document", "page", "section")
Span = dict[str, Any]  # id, name, start, end, asked, answered, numbers
log = logging.getLogger(__name__)


def trace(
    settings: Settings, scrub: Callable[[str], str], question: str, result: dict[str, Any], steps: Sequence[Span]
) -> int:
    """Send one turn: question and answer scrubbed, and of each node its name and seconds.

    Args:
        scrub: `Scrubber().scrub` of the turn's session. Where it fails, nothing is sent.
        result: what `graphs.rcm.run` returns.
        steps: {"node", "seconds"} in the order in which they ran.

    Returns:
        How many receivers took it. One that does not costs a line in the log, and never the answer.
    """
    receivers = [_to_langsmith] if settings.langsmith_tracing and settings.langsmith_api_key else []
    receivers += [_to_collector] if settings.otel_exporter_otlp_endpoint else []
    if not receivers:
        return 0
    try:
        spans = _spans(scrub(question), scrub(result.get("answer") or ""), metrics(result), steps)
    except Exception as error:  # whatever it is: what could not be scrubbed stays here
        log.error("no trace was sent, scrubbing failed: %s", kind_and_place(error))
        return 0
    taken = 0
    for send in receivers:
        try:
            send(settings, spans)
            taken += 1
        except Exception as error:  # whatever a receiver raises: the answer stands
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


def _spans(question: str, answer: str, told: dict[str, Any], steps: Sequence[Span]) -> list[Span]:
    """The turn, then each of its steps."""
    end = datetime.now(UTC)
    at = end - timedelta(seconds=float(told.get("seconds") or 0))
    turn = {"asked": {"question": question}, "answered": {"answer": answer}, "numbers": told}
    spans = [{"id": uuid.uuid4(), "name": "docgemma rcm", "start": at, "end": end, **turn}]
    for step in steps:
        until = at + timedelta(seconds=step["seconds"])
        own = {"asked": {}, "answered": {}, "numbers": {"seconds": step["seconds"]}}
        spans.append({"id": uuid.uuid4(), "name": step["node"], "start": at, "end": until, **own})
        at = until
    return spans


def _to_langsmith(settings: Settings, spans: list[Span]) -> None:
    from langsmith import Client

    client = Client(
        settings.langsmith_endpoint, api_key=settings.langsmith_api_key, auto_batch_tracing=False,
        omit_traced_runtime_info=True, timeout_ms=int(SEND_S * 1000),
    )  # fmt: skip
    for span in spans:
        parent = {} if span is spans[0] else {"parent_run_id": spans[0]["id"]}
        client.create_run(
            span["name"], span["asked"], "chain", id=span["id"], outputs=span["answered"], start_time=span["start"],
            end_time=span["end"], extra={"metadata": span["numbers"]}, **parent,
        )  # fmt: skip


def _to_collector(settings: Settings, spans: list[Span]) -> None:
    """OTLP over HTTP, in JSON."""
    told = [
        {
            "traceId": spans[0]["id"].hex, "spanId": span["id"].hex[:16], "name": span["name"], "kind": 1,
            "parentSpanId": "" if span is spans[0] else spans[0]["id"].hex[:16],
            "startTimeUnixNano": str(int(span["start"].timestamp() * 1e9)),
            "endTimeUnixNano": str(int(span["end"].timestamp() * 1e9)),
            "attributes": [
                {"key": f"rcm.{key}", "value": {"stringValue": str(text)}}
                for key, text in {**span["numbers"], **span["asked"], **span["answered"]}.items()
            ],
        }
        for span in spans
    ]  # fmt: skip
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "docgemma"}}]}
    body = {
        "resourceSpans": [{"resource": service, "scopeSpans": [{"scope": {"name": "docgemma.rcm"}, "spans": told}]}]
    }
    url = f"{str(settings.otel_exporter_otlp_endpoint).rstrip('/')}/v1/traces"
    httpx.post(url, json=body, timeout=SEND_S).raise_for_status()
