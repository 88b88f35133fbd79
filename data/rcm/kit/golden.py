"""Run the golden cases of the revenue-cycle agent through the whole of it, and measure what it claims.

Quotes are compared with what a second program reads in the PDF (pypdfium2; the agent reads with pdfplumber).
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError

from docgemma.ehr.open import open_store
from docgemma.errors import DocGemmaError, kind_and_place
from docgemma.experiments.statistics import wilson
from docgemma.llm.base import LLM
from docgemma.paths import data_file, kit, private_file
from docgemma.rcm.batch import read_lines
from docgemma.settings import Settings

if TYPE_CHECKING:
    from data.experiments.kit.suites import Block, CaseFileError, Text
else:
    suites = kit("experiments", "suites")
    Block, CaseFileError, Text = suites.Block, suites.CaseFileError, suites.Text

general = kit("golden", "golden")
RUNS = "rcm-runs.jsonl"  # of the data home: a line a run
NEVER = ("I don't know", "error", "Traceback")  # stands in no answer
Status = Literal["answered", "needs_clarification", "refused", "stopped"]  # stopped: a clear line in place of an answer
Limit = tuple[Literal["at least", "at most"], float]
TARGETS: dict[str, Limit] = {  # Part 5 of the specification
    "pass_rate": ("at least", 0.80), "verification_accuracy": ("at least", 0.90), "tool_success": ("at least", 0.95),
    "hallucination_rate": ("at most", 0.05), "p90_seconds": ("at most", 30.0),
}  # fmt: skip


class Step(Block):
    """A message that brings documents."""

    say: Text
    pdf: list[str] = Field([])  # of data/rcm/notes


class RcmCase(Block):
    """One golden case, in the specification's form (10.7); what its last answer must be."""

    id: Text
    category: Literal["happy_path", "multi_step", "edge_case", "adversarial", "failure_mode"]
    query: Text
    difficulty: Text
    expected_tools: list[str] = Field([])
    expected_sources: list[str] = Field([])  # documents and sources that are quoted
    must_contain: list[str] = Field([])  # all of them
    must_not_contain: list[str] = Field([])  # and never those of NEVER
    pdf: list[str] = Field([])  # of data/rcm/notes
    renamed: str = ""  # name of the first document, as whoever sends it chose it
    patient: str = ""  # id
    then: list[Text | Step] = Field([])  # messages that follow in the same conversation
    before: list[Status] = Field([])  # how the turns before the last one end
    status: Status = "answered"
    intent: str = ""
    reviews: int = 0  # of the auditor; 0: any
    escalate: bool | None = None
    verdicts: dict[str, Literal["MET", "NOT MET", "NOT DOCUMENTED"]] = Field({})
    broken: dict[str, Any] = Field({})  # settings at the last message: an address where nothing listens
    needs_larger: str = ""  # why the edge model cannot pass it; it is run and told apart


class RcmFile(Block):
    test_cases: Annotated[list[RcmCase], Field(min_length=1)]


@dataclass
class Scored:
    """What came of one case."""

    case: RcmCase
    why: list[str] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    claims: int = 0
    placed: int = 0  # claims whose quote stands on the page that is named
    invented: int = 0  # claims whose quote stands nowhere
    right: int = 0  # verdicts


def is_rcm(path: Path) -> bool:
    """Whether a file of cases is of this agent: the specification's list is called `test_cases`."""
    try:
        with path.open(encoding="utf-8") as file:
            return any(line.startswith("test_cases:") for line in file)
    except (OSError, UnicodeDecodeError):
        return False  # whoever reads it says what is wrong


def load_rcm_cases(path: Path, only: str | None = None) -> list[RcmCase]:
    """The cases of a file, or the one with the id `only`.

    Raises:
        CaseFileError: the file cannot be used, or holds no such case.
    """
    try:
        cases = RcmFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))).test_cases
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise CaseFileError(f"{path} cannot be used: {' '.join(str(error).split())[:300]}.") from error
    if len({case.id for case in cases}) < len(cases):
        raise CaseFileError(f"{path} cannot be used: an id stands twice.")
    chosen = [case for case in cases if only in (None, case.id)]
    if not chosen:
        raise CaseFileError(f"There is no case {only!r} in {path}.")
    return chosen


def run_rcm_cases(
    cases: Sequence[RcmCase], settings: Settings, llm: LLM | None = None,
    progress: Callable[[Scored], Any] = lambda scored: None,
) -> list[Scored]:  # fmt: skip
    """Run cases offline on the shipped records, each in a data home of its own. What goes wrong is a failed case."""
    done = []
    with general.prepared_run(settings, llm) as (home, model):
        prepared = home.model_copy(update={"qdrant_url": None, "rcm_models": None})
        for case in cases:
            done.append(_run(case, prepared, model))
            progress(done[-1])
    return done


def summarize_rcm(done: Sequence[Scored], settings: Settings | None = None) -> dict[str, Any]:
    """The contract's `passed, total, failed, metrics`, and each target of Part 5. With settings the run is kept.

    Cases that need a larger model are told apart where they fail; `held` is whether every target is.
    """
    larger = [one for one in done if one.case.needs_larger and one.why]
    counted = [one for one in done if one not in larger]
    failed = [{"id": one.case.id, "why": "; ".join(one.why)} for one in counted if one.why]
    passed, total, claims = len(counted) - len(failed), len(counted), sum(one.claims for one in done)
    low, high = wilson(passed, total)
    tools = [tool["ok"] for one in done for tool in one.told.get("tools", [])]
    verdicts, right = sum(len(one.case.verdicts) for one in done), sum(one.right for one in done)
    seconds = sorted(one.seconds for one in done)
    loops = [one.told.get("path", []).count("auditor") > 1 for one in done if one.told.get("path")]
    metrics: dict[str, Any] = {
        "pass_rate": _share(passed, total), "low": round(low, 4), "high": round(high, 4),
        "claims": claims, "faithfulness": _share(claims - sum(one.invented for one in done), claims),
        "citation_accuracy": _share(sum(one.placed for one in done), claims),
        "hallucination_rate": _share(sum(one.invented for one in done), claims, 0.0),
        "verdicts": verdicts, "verification_accuracy": _share(right, verdicts),
        "review_loop_rate": _share(sum(loops), len(loops), 0.0), "tool_success": _share(sum(tools), len(tools)),
        "median_seconds": round(seconds[len(seconds) // 2], 3),
        "p90_seconds": round(seconds[len(seconds) * 9 // 10], 3),
    }  # fmt: skip
    targets = [
        {"name": name, "value": metrics[name], "target": f"{kind} {limit:g}",
         "held": metrics[name] >= limit if kind == "at least" else metrics[name] <= limit}
        for name, (kind, limit) in TARGETS.items()
    ]  # fmt: skip
    report = {
        "passed": passed, "total": total, "failed": failed, "metrics": metrics, "targets": targets,
        "held": all(item["held"] for item in targets), "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "needs_larger": [{"id": one.case.id, "why": one.case.needs_larger} for one in larger],
    }  # fmt: skip
    if settings:
        with private_file(settings.home / RUNS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(report) + "\n")
    return report


def kept_runs(settings: Settings) -> list[dict[str, Any]]:
    """Every run that was kept, the last one last; a line that a crash cut off is left out."""
    return list(read_lines(settings.home / RUNS))


def _run(case: RcmCase, prepared: Settings, llm: LLM) -> Scored:
    out = Scored(case)
    start = time.perf_counter()
    try:
        with general.case_home(prepared) as own:
            out.told = _converse(case, own, llm, out.why)
            out.seconds = round(time.perf_counter() - start, 3)
            _score(out, prepared)
    except Exception as error:  # whatever it is, the other cases are still run
        out.why.append(f"stopped: {' '.join(kind_and_place(error).split())}")
        out.seconds = out.seconds or round(time.perf_counter() - start, 3)
    return out


def _converse(case: RcmCase, settings: Settings, llm: LLM, why: list[str]) -> dict[str, Any]:
    """The messages of a case in one conversation; what is told last. Earlier turns that end otherwise go into `why`."""
    thread, told = None, dict[str, Any]()
    first = Step(say=case.query, pdf=case.pdf)
    steps = [first, *(one if isinstance(one, Step) else Step(say=one, pdf=[]) for one in case.then)]
    for number, step in enumerate(steps, 1):
        last = number == len(steps)
        around = settings.model_copy(update=case.broken) if last else settings
        files = [data_file("rcm", "notes", name) for name in step.pdf]
        if case.renamed and step is first:
            files[0] = Path(shutil.copy(files[0], settings.home / case.renamed))
        patient = (case.patient if step is first else "") or None
        try:
            told = ask_rcm(step.say, around, llm, thread=thread, pdf=files, patient=patient)
        except DocGemmaError as error:
            if case.status != "stopped" or not last:
                raise
            return {"status": "stopped", "answer": error.line()}
        thread = told["thread"]
        wanted = dict(enumerate(case.before, 1)).get(number, told["status"])
        if not last and told["status"] != wanted:
            why.append(f"turn {number}: status {told['status']}, not {wanted}")
    return told


def ask_rcm(question: str, settings: Settings, llm: LLM, **options: Any) -> dict[str, Any]:
    """One turn with what the settings name; everything that is opened is closed."""
    from docgemma.agent import Agent
    from docgemma.graphs.rcm import parts_of, run
    from docgemma.rcm.models import load_first

    asked = load_first(settings.model, settings) if settings.model not in (None, llm.name) else llm
    with Agent(settings, llm=asked) as agent:
        return run(question, **parts_of(agent), **options)


def _score(out: Scored, settings: Settings) -> None:
    """Fill in what is wrong, and count claims and verdicts."""
    case = out.case
    nothing = {key: list[Any]() for key in ("claims", "tools", "criteria", "ledger_ids", "path")}
    told = out.told = {**nothing, "intent": "", "escalate": None, "patient": None, **out.told}
    answer = " ".join(told["answer"].split()).casefold()
    reviews = told["path"].count("auditor")
    quoted = {claim["document"] for claim in told["claims"]} | {str(tool["source"]) for tool in told["tools"]}
    tools = {tool["name"] for tool in told["tools"]}
    out.why += [f"status {told['status']}, not {case.status}"] * (told["status"] != case.status)
    out.why += [f"intent {told['intent']}, not {case.intent}"] * (case.intent not in ("", told["intent"]))
    out.why += [f"escalate {told['escalate']}"] * (case.escalate not in (None, told["escalate"]))
    out.why += [f"no call of {name}" for name in case.expected_tools if name not in tools]
    out.why += [f"{name} is not quoted" for name in case.expected_sources if not any(name in one for one in quoted)]
    out.why += [f"lacks {text!r}" for text in case.must_contain if " ".join(text.split()).casefold() not in answer]
    out.why += [
        f"says {text!r}" for text in (*case.must_not_contain, *NEVER) if " ".join(text.split()).casefold() in answer
    ]
    out.why += [f"{reviews} reviews, not {case.reviews}"] * (case.reviews not in (0, reviews))
    said = {item["id"]: item["verdict"] for item in told["criteria"]}
    wrong = {name: said.get(name, "nothing") for name, verdict in case.verdicts.items() if said.get(name) != verdict}
    out.why += [f"criterion {name} {verdict}" for name, verdict in wrong.items()]
    out.right = len(case.verdicts) - len(wrong)
    texts = _pages(case, told, settings)
    for claim in (item for item in told["claims"] if item["kind"] != "interaction"):  # those quote a source, no page
        quote = _folded(claim["quote"])
        out.claims += 1
        placed = quote in texts.get((claim["document"], claim["page"]), "")
        out.placed += placed
        out.why += [f"{claim['document']}, page {claim['page']}, does not say what is quoted"] * (not placed)
        out.invented += not any(quote in text for text in texts.values())
    out.why += [f"{out.invented} quotes stand nowhere"] * bool(out.invented)
    out.why += ["claims without a ledger id"] * bool(told["claims"] and not told["ledger_ids"])


def _pages(case: RcmCase, told: dict[str, Any], settings: Settings) -> dict[tuple[str, int | None], str]:
    """The folded text of every page that may be quoted, by document and number."""
    if not told["claims"]:
        return {}
    import pypdfium2  # type: ignore[import-untyped]

    from docgemma.rcm.chart import chart_document
    from docgemma.rcm.policy_files import load_policies

    texts: dict[tuple[str, int | None], str] = {}
    names = [*case.pdf, *(name for step in case.then if isinstance(step, Step) for name in step.pdf)]
    for at, name in enumerate(names):
        shown = case.renamed if case.renamed and at == 0 else name
        with closing(pypdfium2.PdfDocument(data_file("rcm", "notes", name))) as pdf:
            for number in range(len(pdf)):
                texts[shown, number + 1] = _folded(pdf[number].get_textpage().get_text_range())
    for policy in load_policies().values():  # quoted a criterion a page
        texts |= {(policy["id"], at): _folded(one["text"]) for at, one in enumerate(policy["criteria"], 1)}
    if told["patient"] and told["patient"]["id"]:
        with closing(open_store(settings)) as store:
            chart = store.chart(told["patient"]["id"])
        if chart:
            document = chart_document(chart)
            texts |= {(document["name"], page["number"]): _folded(page["text"]) for page in document["pages"]}
    return texts


def _folded(text: str) -> str:
    """Letters and digits alone: programs differ in blanks, hyphens at line ends and ligatures."""
    return "".join(char for char in text.casefold() if char.isalnum())


def _share(part: int, whole: int, empty: float = 1.0) -> float:
    return round(part / whole, 4) if whole else empty
