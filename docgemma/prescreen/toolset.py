"""The three tools of the prescreen and what executes them: under the budget, everything that they return remembered."""

from collections.abc import Callable
from typing import Any, Protocol, cast

from docgemma.errors import DocGemmaError, ErrorType, ToolError
from docgemma.llm.base import LLM, GenConfig, Prompt
from docgemma.prescreen.concepts import prompts
from docgemma.prescreen.records import Evidence, Facts, Search, ToolCall
from docgemma.prescreen.registry import LARGEST_PAGE, Registry
from docgemma.prescreen.screen import criteria_texts

MAX_TOOL_CALLS = 25
SHOWN = 40  # trials of a page that go back into a prompt
TITLE, CRITERIA = 90, 3000  # characters that go back into a prompt
EXPERT = GenConfig(temperature=0.0, max_tokens=1024)
NO_EXPERT = "Medical expert not available. Proceed with your own clinical knowledge."


class Orchestrator(Protocol):
    """Decides what is asked next; an empty list ends the search. What the executor answered stands in
    `evidence.answers`, one for each call of the last turn, also for those that could not be executed."""

    def next_calls(self, facts: Facts, evidence: Evidence, left: int) -> list[ToolCall]: ...


class Toolset:
    """Executes calls one by one and writes what they brought into the evidence.

    Args:
        expert: the medical model; None, or the edge model, is no expert.
    """

    trace: Callable[[Search], object] | None = None  # called with every executed call

    def __init__(self, source: Registry, expert: LLM | None = None, budget: int = MAX_TOOL_CALLS):
        self.source, self.budget = source, budget
        self.expert = expert if expert and expert.profile != "edge" else None

    def left(self, evidence: Evidence) -> int:
        return max(0, self.budget - sum(evidence.calls.values()))

    def execute(self, call: ToolCall, evidence: Evidence) -> dict[str, Any]:
        """Execute one call. What it answers is short enough for a prompt; a failure is `{"error": ...}`, and counted.

        A call that cannot be (an unknown tool or argument, no budget) reaches no service and is not counted.
        """
        if not self.left(evidence):
            return {"error": "The budget is spent."}
        tool, args = call["tool"], {key: value for key, value in call["args"].items() if value not in (None, "", [])}
        if wrong := _wrong(tool, args):
            return {"error": wrong}
        evidence.calls[tool] += 1
        done = Search(tool=tool, args=args, returned=[], new=[], total=None, next_token="", why=call["why"])
        try:
            answer: dict[str, Any] = getattr(self, f"_{tool}")(args, evidence, done)
        except DocGemmaError as error:
            kind = error.error_type.value if isinstance(error, ToolError) else "model_error"
            done["error"] = f"{kind}: {error}"
            answer = {"error": str(error), "type": kind, "retryable": error.retryable}
            if not (isinstance(error, ToolError) and error.error_type in (ErrorType.INVALID_ARGS, ErrorType.NOT_FOUND)):
                evidence.partial = evidence.partial or f"{tool} failed: {error}"
        evidence.searches.append(done)
        if self.trace:
            self.trace(done)
        return answer | {"calls_left": self.left(evidence)}

    def _search_trials(self, args: dict[str, Any], evidence: Evidence, done: Search) -> dict[str, Any]:
        page = self.source.search(args)
        done["returned"] = list(dict.fromkeys(study["id"] for study in page.studies))
        done["new"] = [trial for trial in done["returned"] if trial not in evidence.studies]
        done["total"], done["next_token"] = page.total, page.token or ""
        for study in page.studies:
            evidence.studies.setdefault(study["id"], study)
        shown = [evidence.studies[trial] for trial in done["new"][:SHOWN]]
        return {
            "returned": len(done["returned"]), "new": len(done["new"]), "total": page.total,
            "next_page_token": done["next_token"],
            "new_trials": [
                {"id": study["id"], "title": study["title"][:TITLE], "conditions": study["conditions"][:4]}
                for study in shown
            ],
        }  # fmt: skip

    def _get_trial_details(self, args: dict[str, Any], evidence: Evidence, done: Search) -> dict[str, Any]:
        study = self.source.study(args["trial_id"])
        done["returned"] = [study["id"]]
        done["new"] = [study["id"]] if study["id"] not in evidence.studies else []
        evidence.studies[study["id"]] = study
        inclusion, exclusion = criteria_texts(study["criteria"])
        return {
            "id": study["id"], "title": study["title"], "status": study["status"],
            "inclusion": inclusion[:CRITERIA], "exclusion": exclusion[:CRITERIA],
        }  # fmt: skip

    def _consult_medical_expert(self, args: dict[str, Any], evidence: Evidence, done: Search) -> dict[str, Any]:
        if self.expert is None:
            done["error"] = NO_EXPERT
            return {"error": NO_EXPERT}
        prompt = Prompt(prompts()["expert"].format(question=args["question"]))
        told = self.expert.text(prompt, EXPERT, node="consult_medical_expert")
        for call in told.calls:
            evidence.tokens["prompt"] += call.prompt_tokens
            evidence.tokens["completion"] += call.completion_tokens
        done["answer"] = told.value
        return {"answer": told.value}


def _wrong(tool: str, args: dict[str, Any]) -> str:
    """Why a call cannot be executed, "" where it can. A page size above the registry's is cut down to it."""
    tools = {item["name"]: item["parameters"] for item in prompts()["tools"]}
    declared = tools.get(tool)
    if declared is None:
        return f"There is no tool {tool!r}. Tools: {', '.join(tools)}."
    known = declared["properties"]
    if unknown := sorted(set(args) - set(known)):
        return f"{tool} has no argument {', '.join(unknown)}. Arguments: {', '.join(known)}."
    for name, value in args.items():
        kind = known[name]["type"]
        fits: type = {"string": str, "integer": int, "array": list}[kind]
        if not isinstance(value, fits) or isinstance(value, bool):
            return f"{name} must be {kind}."
        if kind == "array" and not all(isinstance(item, str) for item in cast(list[Any], value)):
            return f"{name} must be a list of texts."
    if missing := [name for name in declared["required"] if name not in args]:
        return f"{tool} needs {', '.join(missing)}."
    if "page_size" in args:
        args["page_size"] = max(1, min(args["page_size"], LARGEST_PAGE))
    return ""
