"""The three tools of the prescreen and what executes them: under the budget, everything that they return remembered."""

from collections.abc import Callable
from typing import Any, Protocol, cast

from docgemma.errors import DocGemmaError, ErrorType, ToolError
from docgemma.llm.base import LLM, GenConfig, Prompt
from docgemma.prescreen.records import Evidence, Facts, Search, ToolCall
from docgemma.prescreen.registry import LARGEST_PAGE, Registry
from docgemma.prescreen.screen import criteria_texts

MAX_TOOL_CALLS = 25
SHOWN = 40  # trials of a page that go back into a prompt
TITLE, CRITERIA = 90, 3000  # characters that go back into a prompt
EXPERT = GenConfig(temperature=0.0, max_tokens=1024)
NO_EXPERT = "Medical expert not available. Proceed with your own clinical knowledge."
EXPERT_PROMPT = """\
You are a clinical expert advising a clinical trial search agent.
Answer concisely and actionably. Focus on specific medical terms, synonyms, and CT.gov condition vocabulary.

Question: {question}"""


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}


def _declared(name: str, says: str, required: list[str], **arguments: tuple[dict[str, Any], str]) -> dict[str, Any]:
    """A tool; each argument with its type and its description."""
    properties = {argument: kind | {"description": told} for argument, (kind, told) in arguments.items()}
    schema = {"type": "object", "required": required, "properties": properties}
    return {"name": name, "description": says, "parameters": schema}


DECLARATIONS = [
    _declared(
        "search_trials",
        "Search ClinicalTrials.gov. One condition term per call; trials are indexed under many vocabulary terms, so "
        "use diverse terms across calls.",
        [],
        condition=(TEXT, "Disease or condition. The primary search lever."),
        intervention=(TEXT, "Drug or therapy name."),
        eligibility_keywords=(
            TEXT,
            "Free text searched inside eligibility criteria. Best for biomarkers and clinical phenotype terms.",
        ),
        status=(TEXTS, "Recruitment status: RECRUITING, NOT_YET_RECRUITING, ACTIVE_NOT_RECRUITING, COMPLETED."),
        phase=(TEXTS, "Optional: EARLY_PHASE1, PHASE1, PHASE2, PHASE3, PHASE4."),
        location=(TEXT, "Optional: a country or a city."),
        study_type=(TEXT, "Optional: INTERVENTIONAL or OBSERVATIONAL."),
        page_size=(NUMBER, "Results per call, default 50, at most 100."),
        page_token=(TEXT, "The next_page_token of an earlier page."),
        age=(NUMBER, "Years. NOT recommended: many trials lack structured age data and are silently excluded."),
        sex=(TEXT, "MALE or FEMALE. NOT recommended, as age."),
    ),
    _declared(
        "get_trial_details",
        "Fetch the full eligibility criteria of one trial. Each call costs one tool use; prefer more searches.",
        ["trial_id"],
        trial_id=(TEXT, "The id as a search returned it."),
    ),
    _declared(
        "consult_medical_expert",
        "Ask a specialized medical AI (MedGemma) a clinical question when you need domain expertise: condition terms "
        "or synonyms to search for a diagnosis, relevance of a biomarker, comorbidities or presentations of the "
        "diagnosis, whether an intervention fits the treatment line, terminology of criteria. Each call takes "
        "about 8-15 seconds: 2-3 calls per patient are typical. Do not call it for every search result.",
        ["question"],
        question=(TEXT, "The clinical question. Be specific and include patient context."),
    ),
]
PARAMETERS = {tool["name"]: tool["parameters"] for tool in DECLARATIONS}


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
        prompt = Prompt(EXPERT_PROMPT.format(question=args["question"]))
        told = self.expert.text(prompt, EXPERT, node="consult_medical_expert")
        for call in told.calls:
            evidence.tokens["prompt"] += call.prompt_tokens
            evidence.tokens["completion"] += call.completion_tokens
        done["answer"] = told.value
        return {"answer": told.value}


def _wrong(tool: str, args: dict[str, Any]) -> str:
    """Why a call cannot be executed, "" where it can. A page size above the registry's is cut down to it."""
    declared = PARAMETERS.get(tool)
    if declared is None:
        return f"There is no tool {tool!r}. Tools: {', '.join(PARAMETERS)}."
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
