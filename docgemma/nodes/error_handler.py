"""Node 5a: a failed tool. Code decides to ask, to skip or to retry; the model only says which kind of retry."""

from collections.abc import Callable
from typing import Any

from langgraph.runtime import Runtime

from docgemma.errors import RETRYABLE, ErrorType
from docgemma.nodes.context import Context
from docgemma.prompts import ask_retry
from docgemma.rules import known
from docgemma.rules.errors import MAX_RETRIES, handle_error
from docgemma.rules.plan import complete
from docgemma.state import AgentState, ToolResult
from docgemma.text.words import plain

# how to retry a failed call, None for not at all, and the model calls that it took to say so
Choice = Callable[[ToolResult], tuple[str | None, list[dict[str, Any]]]]


def handle_failure(state: AgentState, runtime: Runtime[Context]) -> dict[str, Any]:
    return recover(state, lambda result: _strategy(state, result, runtime.context))


def recover(state: AgentState, strategy_for: Choice, most: int = MAX_RETRIES) -> dict[str, Any]:
    """Ask, skip or retry (one tool `most` times at most) after the call that failed last."""
    result = state["tool_results"][-1]
    decision = handle_error(result, state["retry_count"], state["total_retries"], most)
    unclear = str(result["details"].get("entity") or "")
    on = {"next_node": "synthesize" if complete(state) else "tool_select", "retry_count": 0, "retry_strategy": None}
    if decision.action == "ask_user" and not _asked_about(unclear, state, result):
        return on
    if decision.action == "ask_user" and not result["writes"] and _beside_others(unclear, state, result):
        return {**on, "error_messages": [f"{unclear} was not checked."]}
    if decision.clarification:
        question = {**decision.clarification, "query": state["user_query"], "entity": unclear}
        return {"clarification": question, "next_node": "synthesize", "retry_strategy": None}
    strategy, calls = strategy_for(result) if decision.action == "retry" else (None, [])
    if strategy is None:
        return {**on, "error_messages": [decision.message]}
    return {
        "retry_strategy": strategy,
        "retry_count": state["retry_count"] + 1,
        "total_retries": state["total_retries"] + 1,
        "next_node": "tool_select",
        "calls": calls,
    }


def _strategy(state: AgentState, result: ToolResult, context: Context) -> tuple[str | None, list[dict[str, Any]]]:
    """How to retry, and the calls it took to decide. The reader has no other arguments than those it read."""
    if context.reads:
        return ("retry_same" if result["error_type"] in RETRYABLE else None), []
    value, calls = context.ask(ask_retry(state, result))
    return value.strategy, calls


def _beside_others(unclear: str, state: AgentState, result: ToolResult) -> bool:
    """Whether an ambiguous name stands beside a drug that was recognised: that one is answered, this one is named."""
    if result["error_type"] != ErrorType.AMBIGUOUS_DRUG_NAME:
        return False
    return any(plain(name) != plain(unclear) for name in known.drugs(state))


def _asked_about(unclear: str, state: AgentState, result: ToolResult) -> bool:
    """Whether the doubt is about what the clinician said: a medicine's name in the chart is not asked about."""
    if result["error_type"] != ErrorType.AMBIGUOUS_DRUG_NAME:
        return True
    return plain(unclear) in plain(state["user_query"]) or not known.charts(state)
