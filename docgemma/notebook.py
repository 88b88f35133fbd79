"""What notebooks share: an agent in one line, an answer as a page, a turn as a picture. Needs the notebooks extra."""

import contextlib
import html
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from docgemma.agent import Agent
from docgemma.errors import DocGemmaError, ErrorType, ToolError
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.report import model_calls, source_line
from docgemma.settings import Settings, read_settings

COLOURS = {  # of the nodes in the order in which they run: code, a constrained choice, a handled problem, prose
    "input_assembly": "#2e7d32", "intent_classify": "#1565c0", "tool_select": "#1565c0", "tool_execute": "#2e7d32",
    "result_classify": "#1565c0", "router": "#2e7d32", "error_handler": "#c62828", "synthesize": "#e65100",
}  # fmt: skip
V3 = tuple(COLOURS)
COLOURS |= {  # of the nodes that only v1 and v2 have
    "image_detection": "#2e7d32", "context_assembler": "#2e7d32", "complexity_router": "#1565c0", "triage": "#1565c0",
    "decompose": "#1565c0", "plan_tool": "#1565c0", "fast_path": "#2e7d32", "validate_call": "#2e7d32",
    "fix_args": "#1565c0", "check_result": "#2e7d32", "assess_result": "#2e7d32", "error_strategy": "#c62828",
    "think": "#e65100", "extract_needs": "#1565c0", "think_again": "#e65100",
}  # fmt: skip

_models: dict[tuple[Any, ...], LLM] = {}
turns: list[dict[str, Any]] = []  # each turn of this process's notebook agents: the report, with its question


class _Noted(Agent):
    def _report(self, thread: str, seconds: float) -> dict[str, Any]:
        result = super()._report(thread, seconds)
        turns.append({"question": self._stored(thread).values["message"], **result})
        return result


def start(model: str | None = None, **settings: Any) -> Agent:
    """An agent on a fresh data home, so that a notebook gives the same result every time it runs.

    All agents of a notebook share one loaded model: beside a second one MedGemma would not fit on a T4.

    Args:
        model: None takes MedGemma where a GPU and its weights are found, else the edge model.
        settings: any field of `Settings`, for example `narrowing=False`.
    """
    home = tempfile.mkdtemp(prefix="docgemma-notebook-")
    given: Settings = read_settings(**{"home": home, **settings})
    agent = _Noted(given, llm=shared_model(model, given), on_progress=print)
    print(f"{agent.llm.name} is loaded.")
    return agent


def shared_model(name: str | None, settings: Settings) -> LLM:
    """The model of this process, loaded once and left open. `name` as for `load_llm`."""
    key = (name, settings.model, settings.threads, settings.fast_decoding, settings.gpus)
    if key not in _models:
        _models[key] = load_llm(name, settings, on_progress=print)
    return _models[key]


def release() -> None:
    """Free the memory of the models that notebooks share; the next `start` loads anew."""
    while _models:
        _models.popitem()[1].close()


def show(result: dict[str, Any]) -> Any:
    """The answer, what it rests on, and the timeline, as a clinician would read them."""
    from IPython.display import HTML

    steps = "".join(
        f"<tr><td style='text-align:right'>{step['seconds']:.2f} s</td><td>{html.escape(step['label'])}</td>"
        f"<td style='text-align:left'>{html.escape(step['detail'])}</td></tr>"
        for step in result["timeline"]
    )
    answer = html.escape(result["answer"]).replace("\n", "<br>")
    sources = "".join(f"<li>{html.escape(source_line(item))}</li>" for item in result["sources"])
    return HTML(
        f"<p><b>{html.escape(result['status'].replace('_', ' '))}</b> · {model_calls(result)} · "
        f"{result['seconds']:.1f} s</p><blockquote>{answer}</blockquote>"
        f"<ul>{sources}</ul><table>{steps}</table>"
    )


def draw_paths(results: Sequence[dict[str, Any]], titles: Sequence[str]) -> Any:
    """One row a turn: the nodes as they ran, loops included. Green is code, blue a constrained choice, orange prose;
    a dot is hollow where no model was called."""
    import matplotlib.pyplot as plt

    longest = max(len(result["path"]) for result in results)
    figure, axes = plt.subplots(figsize=(min(1.0 + 0.62 * longest, 12), 0.9 + 0.75 * len(results)))
    for row, (result, title) in enumerate(zip(results, titles, strict=True)):
        y = len(results) - row
        axes.plot(range(len(result["path"])), [y] * len(result["path"]), color="#bbb", zorder=1)
        colours = [COLOURS[node] for node in result["path"]]
        called = [step.get("calls", result["llm_calls"]) for step in result["timeline"]]
        filled = [colour if count else "white" for colour, count in zip_longest(colours, called[: len(colours)])]
        axes.scatter(range(len(colours)), [y] * len(colours), s=140, zorder=2, color=filled, edgecolors=colours)
        axes.text(-0.3, y + 0.28, title, fontsize=9, ha="left")
    ran = {node for result in results for node in result["path"]}
    for node in V3 if ran <= set(V3) else [name for name in COLOURS if name in ran]:
        axes.scatter([], [], color=COLOURS[node], label=node.replace("_", " "))
    axes.legend(ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.02), frameon=False)
    axes.set_ylim(0.4, len(results) + 0.8)
    axes.axis("off")
    figure.tight_layout()
    plt.close(figure)
    return figure


def ask_box(agent: Agent, question: str) -> Any:
    """A line to type another question into, and its answer below."""
    import ipywidgets
    from IPython.display import display

    def answer(question: str) -> None:
        try:
            display(show(agent.ask(question)))
        except DocGemmaError as error:
            print(error.line())

    line = ipywidgets.Text(value=question, layout=ipywidgets.Layout(width="80%"))
    return ipywidgets.interactive(answer, {"manual": True, "manual_name": "Ask"}, question=line)


@contextlib.contextmanager
def failing(agent: Agent, error_type: str, times: int) -> Iterator[None]:
    """Let the next calls of any tool fail in a known way, so that a notebook can show what follows."""
    real, left = agent.toolbox, [times]

    def call(name: str, args: dict[str, Any], context: Any) -> Any:
        if left[0] <= 0:
            return type(real).call(real, name, args, context)
        left[0] -= 1
        return real.failed(name, args, ToolError(ErrorType(error_type)))

    vars(real)["call"] = call
    try:
        yield
    finally:
        del vars(real)["call"]
