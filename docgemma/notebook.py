"""What notebooks share: an agent in one line, an answer as a page. Needs the notebooks extra."""

import contextlib
import html
import tempfile
from collections.abc import Iterator
from typing import Any

from docgemma.agent import Agent
from docgemma.errors import DocGemmaError, ErrorType, ToolError
from docgemma.llm import load_llm
from docgemma.llm.base import LLM
from docgemma.report import model_calls, source_line
from docgemma.settings import Settings, read_settings

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
