"""DocGemma's v3 graph against LangGraph's prebuilt ReAct agent, on the same small model, tools and questions.

    python benchmarks/react.py [--questions N] [--seed N] [--threads N] [--bare]

ReAct is set up as its library means it to be: `create_react_agent`, its loop and its tool node, over a chat model on
the same in-process llama.cpp. Tools are offered in the format of the SmolLM2 family for function calling;
a grammar leaves the model the choice between a call and an answer in words, and holds a call to the tool's JSON schema,
so that no call is malformed. It may call four tools, as v3 may. Tried without this project's adapter, as its makers
trained the model to chat; the same with the first call required, since every question here needs a tool; and with the
adapter. v3 is tried with the adapter and its prompts; with --bare also without it, on MedGemma's prompts.

The questions are held-out ones that need a tool, a seeded sample of those without image, history or active patient.
Tools read the offline snapshot and the shipped records. Nobody approves a write: v3 stops and asks, and for ReAct the
tool refuses.
"""

import argparse
import json
import random
import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from common import Report, middle, prepared, say, share, spread
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from docgemma.agent import Agent
from docgemma.edge import items
from docgemma.errors import ModelError
from docgemma.llm.chat import chatml
from docgemma.llm.llamacpp import LlamaCppLLM
from docgemma.llm.load import edge_adapter, edge_weights
from docgemma.settings import Settings

# SmolLM2's prompt for function calling (1.7B model card; Ollama's template for all sizes), but for the last paragraph
SYSTEM = """\
You are an expert in composing functions. You are given a question and a set of possible functions. Based on the \
question, you will need to make one or more function/tool calls to achieve the purpose. If none of the functions can \
be used, point it out and refuse to answer. If the given question lacks the parameters required by the function, also \
point it out.

You have access to the following tools:
<tools>{tools}</tools>

The output MUST strictly adhere to the following format, and NO other text MUST be included. The example format is as \
follows. Please make sure the parameter type is correct.
<tool_call>[{{"name": "func_name1", "arguments": {{"argument1": "value1", "argument2": "value2"}}}}]</tool_call>

When the results of the tools are there, or no function call is needed, answer the clinician briefly, in words."""
CALL = re.compile(r"<tool_call>\[(.*)\]</tool_call>", re.DOTALL)
TOOL_ROUNDS = 4
OUT_OF_STEPS = "Sorry, need more steps to process this request."  # langgraph's own words
ANSWER_TOKENS = 96


@dataclass
class Outcome:
    """One question: which tool came first, how the turn ended, and what it cost."""

    question: str
    expected: str
    first_tool: str | None
    ended: str  # answered, asked, stopped for approval, no answer, or an error
    seconds: float
    calls: int
    prompt_tokens: int
    kept_tokens: int
    new_tokens: int
    answer: str = ""


class LocalChat(BaseChatModel):
    """A model on llama.cpp as LangChain wants it. `required`: a turn without results begins with a call."""

    llm: Any
    usage: list[dict[str, int]]
    required: bool = False

    @property
    def _llm_type(self) -> str:
        return "llama.cpp"

    def bind_tools(self, tools: list[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool)["function"] for tool in tools], **kwargs)

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, tools=(), **kwargs) -> ChatResult:
        must = self.required and not any(isinstance(message, ToolMessage) for message in messages)
        body = {"prompt": chat_text(messages, tools), "grammar": "%llguidance {}\n" + call_or_answer(tools, must),
                "n_predict": ANSWER_TOKENS, "temperature": 0.0, "stream": True}  # fmt: skip
        done = self.llm._collect(self.llm._stream(body), None)
        self.usage.append({"prompt": done.prompt_tokens, "kept": done.cached_tokens, "new": done.completion_tokens})
        text, calls = done.text.strip(), []
        if found := CALL.fullmatch(text):
            call = json.loads(found[1])
            calls, text = [{"name": call["name"], "args": call["arguments"], "id": f"call-{len(self.usage)}"}], ""
        elif text.startswith("<tool_call>"):
            text = ""  # the budget ended inside a call
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=calls))])


def chat_text(messages: list[BaseMessage], tools: Sequence[dict[str, Any]]) -> str:
    """ChatML, as SmolLM2 was trained on it."""
    turns = [{"role": "system", "content": SYSTEM.format(tools=json.dumps(list(tools)))}]
    for message in messages:
        if isinstance(message, ToolMessage):
            turns.append({"role": "user", "content": f"<tool_response>\n{message.content}\n</tool_response>"})
        elif isinstance(message, AIMessage):
            made = [json.dumps({"name": call["name"], "arguments": call["args"]}) for call in message.tool_calls]
            turns.append({"role": "assistant", "content": f"<tool_call>[{', '.join(made)}]</tool_call>"})
        else:
            turns.append({"role": "user", "content": message.content})
    return chatml(turns)


def call_or_answer(tools: Sequence[dict[str, Any]], must: bool) -> str:
    """llguidance: one call of a tool with arguments of its schema, or text that does not begin like a call."""
    one = [
        {"type": "object", "properties": {"name": {"const": tool["name"]}, "arguments": tool["parameters"]},
         "required": ["name", "arguments"], "additionalProperties": False}
        for tool in tools
    ]  # fmt: skip
    spaced = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    call = "%json " + json.dumps({"anyOf": one, "x-guidance": spaced})
    start = "call" if must else "call | ANSWER"
    return f'start: {start}\ncall: "<tool_call>[" body "]</tool_call>"\nbody: {call}\nANSWER: /[^<](?s:.)*/'


def react(llm: LlamaCppLLM, agent: Agent, required: bool) -> Callable[[dict[str, Any]], Outcome]:
    from langgraph.prebuilt import create_react_agent

    chat = LocalChat(llm=llm, usage=[], required=required)
    with warnings.catch_warnings(action="ignore"):  # its successor is in another package and does the same
        graph = create_react_agent(chat, as_langchain(agent))

    def run(item: dict[str, Any]) -> Outcome:
        chat.usage.clear()
        start = time.perf_counter()
        messages, ended = [], ""
        try:
            # by hand instead of invoke, so that what was done before an error is seen
            for state in graph.stream({"messages": [("user", item["question"])]}, stream_mode="values",
                                      config={"recursion_limit": 2 * TOOL_ROUNDS + 1}):  # fmt: skip
                messages = state["messages"]
        except (ModelError, ValueError, RuntimeError) as error:
            ended = f"error: {type(error).__name__}"
        seconds = time.perf_counter() - start
        called = [call["name"] for message in messages for call in getattr(message, "tool_calls", [])]
        last = messages[-1] if messages else None
        text = last.content.strip() if isinstance(last, AIMessage) and not last.tool_calls else ""
        ended = ended or ("answered" if text and text != OUT_OF_STEPS else "no answer")
        return outcome(item, called[0] if called else None, ended, seconds, chat.usage, text)

    return run


def as_langchain(agent: Agent) -> list[StructuredTool]:
    """The ten tools. What one returns is the text that v3's model reads; a write is refused, since nobody approves."""

    def make(tool: Any) -> StructuredTool:
        def call(**args: Any) -> str:
            return agent.toolbox.call(tool.name, args, agent.tool_context())["formatted_result"]

        return StructuredTool.from_function(call, name=tool.name, description=tool.description, args_schema=tool.args)

    return [make(tool) for tool in agent.toolbox]


def v3(agent: Agent) -> Callable[[dict[str, Any]], Outcome]:
    endings = {"answered": "answered", "refused": "answered", "needs_clarification": "asked",
               "needs_approval": "stopped for approval"}  # fmt: skip

    def run(item: dict[str, Any]) -> Outcome:
        thread, start = f"bench-{time.time_ns()}", time.perf_counter()
        first, text = None, ""
        try:
            result = agent.ask(item["question"], thread=thread, create=True)
            ended, text = endings[result["status"]], result["answer"]
        except ModelError as error:
            ended = f"error: {type(error).__name__}"
        seconds = time.perf_counter() - start
        state = agent.app.get_state(agent._config(thread)).values
        if done := state.get("tool_results"):
            first = done[0]["tool_name"]
        elif state.get("current_tool"):
            first = state["current_tool"]
        usage = [
            {"prompt": call["prompt_tokens"], "kept": call["cached_tokens"], "new": call["completion_tokens"]}
            for call in state.get("calls", [])
        ]
        return outcome(item, first, ended, seconds, usage, text)

    return run


def outcome(item: dict[str, Any], first: str | None, ended: str, seconds: float, usage: list, text: str) -> Outcome:
    totals = [sum(call[key] for call in usage) for key in ("prompt", "kept", "new")]
    return Outcome(item["question"], item["steps"][0]["tool"], first, ended, seconds, len(usage), *totals, text[:200])


def conditions(settings: Settings, threads: int, bare_v3: bool) -> dict[str, Callable[[dict[str, Any]], Outcome]]:
    def load(profile: str, adapter: bool) -> LlamaCppLLM:
        return LlamaCppLLM("edge", edge_weights(), adapter=edge_adapter() if adapter else None, profile=profile,
                           threads=threads)  # fmt: skip

    tuned, bare = Agent(settings, llm=load("edge", True)), Agent(settings, llm=load("full", False))
    return {
        "v3, adapter": v3(tuned),
        **({"v3, no adapter, full prompts": v3(bare)} if bare_v3 else {}),
        "ReAct, no adapter": react(load("full", False), bare, False),
        "ReAct, no adapter, first call required": react(load("full", False), bare, True),
        "ReAct, adapter, first call required": react(load("edge", True), tuned, True),
    }


def sample(count: int, seed: int) -> list[dict[str, Any]]:
    """Held-out questions for one tool whose whole context is the question."""
    known = [item for item in items.load("heldout") if item["kind"] == "tool"]
    alone = [item for item in known if not {"before", "patient", "image"} & item.keys()]
    return random.Random(seed).sample(alone, min(count, len(alone)))


def summarize(name: str, found: list[Outcome]) -> list[Any]:
    total = len(found)
    seconds = [item.seconds for item in found]
    ended = {kind: sum(item.ended == kind for item in found) for kind in ("answered", "asked", "stopped for approval")}
    return [
        name, total, share(sum(item.first_tool == item.expected for item in found), total),
        share(sum(ended.values()), total), ended["asked"] + ended["stopped for approval"],
        sum(item.ended.startswith("error") for item in found),
        middle([item.calls for item in found]), middle([item.prompt_tokens for item in found]),
        middle([item.prompt_tokens - item.kept_tokens for item in found]), middle([item.new_tokens for item in found]),
        middle(seconds), spread(seconds),
    ]  # fmt: skip


HEAD = ["agent", "n", "right first tool (95 %)", "ended properly (95 %)", "of these asked a person", "errors",
        "calls", "prompt tokens", "of these computed", "new tokens", "s", "middle half"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=48)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--bare", action="store_true", help="v3 without the adapter, on MedGemma's prompts, too")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    picked = sample(chosen.questions, chosen.seed)
    about = " ".join(__doc__.partition("]\n\n")[2].split())
    with prepared(threads=chosen.threads) as settings:
        report = Report("react", about, seed=chosen.seed, threads=chosen.threads, ids=[item["id"] for item in picked])
        runs = conditions(settings, chosen.threads, chosen.bare)
        found: dict[str, list[Outcome]] = {name: [] for name in runs}
        for number, item in enumerate(picked, 1):
            for name in list(runs) if number % 2 else reversed(list(runs)):
                found[name].append(runs[name](item))
            say(f"question {number} of {len(picked)}")
            if number % 10 == 0 or number == len(picked):  # a run that is cut still says what it saw
                show(report, found)


def show(report: Report, found: dict[str, list[Outcome]]) -> None:
    note = "Medians for each question. `Ended properly`: an answer in words, or v3's stop to ask a person."
    report.table("v3 and ReAct", HEAD, [summarize(name, outcomes) for name, outcomes in found.items()], note)
    report.keep("items", {name: [asdict(item) for item in outcomes] for name, outcomes in found.items()})


if __name__ == "__main__":
    main()
