"""Asking a person, through the MCP client, before anything is written. Where the client cannot ask, nothing is.

Two generations of the protocol ask in two ways: up to 2025-11-25 the server sends a request in the middle of the call;
from 2026-07-28 on the call ends with the question and comes again with the answer. A question comes with its safety
findings, and an answer counts only for the question as it was shown.
"""

import hashlib
import hmac
import json
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import is_version_at_least
from pydantic import ValidationError

from docgemma.ehr.base import PatientMatch
from docgemma.errors import ErrorType, ToolError
from docgemma.tools.base import Tool
from docgemma.tools.untrusted import clean_text

ASKS_BY_ROUNDS = "2026-07-28"
APPROVE = "approve"
CONFIRM = "confirm"  # the question's name within a round
FORM = {
    "type": "object",
    "properties": {
        APPROVE: {
            "type": "boolean",
            "title": "Record this entry",
            "description": "Yes writes it into the patient's record; no leaves the record as it is.",
        }
    },
    "required": [APPROVE],
}
SAFETY = "Safety check"
CANNOT_ASK = "Nothing was recorded: this MCP client cannot ask a person to confirm (elicitation)."
DECLINED = "Nothing was recorded: the entry was not confirmed."


@dataclass(frozen=True)
class Question:
    """What a person is shown before a write."""

    message: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.message.encode()).hexdigest()

    def request(self) -> types.ElicitRequest:
        return types.ElicitRequest(params=types.ElicitRequestFormParams(message=self.message, requested_schema=FORM))


def question(tool: Tool, args: dict[str, Any], patient: PatientMatch, findings: list[str] | None) -> Question:
    """Put a write into words.

    Args:
        findings: of the safety check; None where none applies, or where the person has seen it before this call.
    """
    lines = [f"{tool.label} for {patient.label} (patient ID {patient.id})"]
    lines += [
        f"{name.replace('_', ' ').capitalize()}: {clean_text(str(value), 400)}"
        for name, value in args.items()
        if name != "patient_id" and value not in (None, "")
    ]
    if findings:
        lines += [f"{SAFETY}:", *(f"- {one_line(item)}" for item in findings)]
    elif findings is not None:
        lines.append(f"{SAFETY}: no conflict was found in the record and the drug data.")
    return Question("\n".join(lines))


def shown_findings(message: str) -> list[str]:
    """The findings in a question: the other way round. `_meta` would not do, the newer protocol drops it here."""
    _, mark, rest = message.partition(f"\n{SAFETY}:\n")
    return [line.removeprefix("- ") for line in rest.splitlines()] if mark else []


def one_line(finding: str) -> str:
    return clean_text(finding, 400)


async def confirmed(
    ctx: ServerRequestContext, params: types.CallToolRequestParams, asked: Question
) -> bool | types.InputRequiredResult:
    """Whether a person wants it; or, in the newer protocol, the question that has to go out first.

    Raises:
        ToolError: `not_permitted`, the client cannot ask a person.
    """
    if not can_ask(ctx.session.client_capabilities):
        raise ToolError(ErrorType.NOT_PERMITTED, "the client has no elicitation", reason=CANNOT_ASK)
    if is_version_at_least(ctx.protocol_version, ASKS_BY_ROUNDS):
        answer = (params.input_responses or {}).get(CONFIRM)
        if answer is None or _asked_before(params.request_state) != asked.digest:
            return types.InputRequiredResult(
                input_requests={CONFIRM: asked.request()}, request_state=json.dumps({"asked": asked.digest})
            )
        return _is_yes(answer)
    return _is_yes(await _ask_now(ctx, asked))


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """A bare `elicitation: {}` means forms, as it did before there were modes."""
    asks = capabilities.elicitation if capabilities else None
    return asks is not None and (asks.form is not None or asks.url is None)


class WriteKeys:
    """Keys that make a retried request write once.

    A client may give its own key. Otherwise the same write, asked for again by the same session within ten minutes, is
    taken for a retry and keeps its key.
    """

    WINDOW_S = 600.0

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(16)  # a key tells nothing about the patient
        self._recent: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def key(self, session: str, tool: str, args: dict[str, Any], given: Any = None) -> str:
        if isinstance(given, str) and given:
            return hashlib.sha256(f"mcp/{tool}/{given}".encode()).hexdigest()[:32]
        text = json.dumps([session, tool, args], sort_keys=True)
        name = hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()
        now = time.monotonic()
        with self._lock:
            self._recent = {key: item for key, item in self._recent.items() if now - item[0] < self.WINDOW_S}
            _, kept = self._recent.setdefault(name, (now, secrets.token_hex(16)))
            return kept


async def _ask_now(ctx: ServerRequestContext, asked: Question) -> types.ElicitResult | None:
    """The older protocol's question. An answer that cannot be read is no yes."""
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        return await ctx.session.send_request(asked.request(), types.ElicitResult, metadata=related)
    except ValidationError:
        return None
    except MCPError as error:
        raise ToolError(ErrorType.NOT_PERMITTED, f"elicitation failed: {error.code}", reason=CANNOT_ASK) from None


def _asked_before(state: str | None) -> str | None:
    """What the last round asked. The state was sealed by this server and its seal was checked."""
    return json.loads(state).get("asked") if state else None


def _is_yes(answer: Any) -> bool:
    accepted = isinstance(answer, types.ElicitResult) and answer.action == "accept"
    return accepted and (answer.content or {}).get(APPROVE) is True
