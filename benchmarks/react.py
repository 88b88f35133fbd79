"""LangGraph's prebuilt ReAct agent over this project's tools and a loaded language model.

Set up as its library means it to be: `create_react_agent`, its loop and its tool node. In each round the model writes
one JSON object, a call of one tool with arguments of its schema or an answer, held to that by the same grammar as
every other call here. Four rounds of tools, as v3. A write is not carried out: the first one is the card that waits.
"""

import contextlib
import json
import warnings
from typing import Any, Literal, Union

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field, RootModel, create_model

from docgemma.agent import Agent
from docgemma.llm.base import GenConfig, Prompt

SYSTEM = """\
You help a clinician. Answer with one JSON object: a call of a tool, or, when the results are there or none is needed, \
a brief answer in words. Tools:

"""
ROUNDS = 4
SAMPLED = GenConfig(temperature=0.0, max_tokens=256)
MORE_STEPS = "Sorry, need more steps to process this request."  # langgraph's own words


class LocalChat(BaseChatModel):
    """A loaded model as LangChain wants it; `calls` collects the records of its generations."""

    llm: Any
    box: Any
    calls: list[Any]

    @property
    def _llm_type(self) -> str:
        return "docgemma"

    def bind_tools(self, tools: list[Any], **kwargs: Any) -> Any:
        return self  # it knows them: `box`

    def _generate(self, messages: list[BaseMessage], stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        system = SYSTEM + "\n\n".join(f"- {tool.full_description}" for tool in self.box)
        prompt = Prompt("\n\n".join(map(_told, messages)), system)
        done = self.llm.structured(prompt, self._schema(), SAMPLED, node="react")
        self.calls += done.calls
        step = done.value.model_dump()
        if "answer" in step:
            message = AIMessage(step["answer"])
        else:
            call = {"name": step["tool"], "args": step["arguments"], "id": f"call-{len(self.calls)}"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _schema(self) -> type[BaseModel]:
        """A call of one of the tools, or an answer."""
        kinds: list[Any] = [
            create_model(f"Call_{tool.name}", tool=(Literal[tool.name], ...), arguments=(tool.args, ...))
            for tool in self.box
        ]
        kinds.append(create_model("Answer", answer=(str, Field(min_length=1, max_length=800))))
        return create_model("Step", __base__=RootModel[Union[tuple(kinds)]])


def _told(message: BaseMessage) -> str:
    if isinstance(message, AIMessage):
        return "\n".join(f"Call: {json.dumps(call['args'])} of {call['name']}" for call in message.tool_calls)
    return f"Result: {message.content}" if isinstance(message, ToolMessage) else f"Clinician: {message.content}"


def ask_react(agent: Agent, question: str) -> dict[str, Any]:
    """One turn, in the keys that the golden kit's `checks.py` and the comparison read. Raises what the model raises."""
    from langgraph.errors import GraphRecursionError
    from langgraph.prebuilt import create_react_agent

    chat, tools, card = LocalChat(llm=agent.llm, box=agent.toolbox, calls=[]), list[dict[str, Any]](), dict[str, Any]()

    def offered(tool: Any) -> StructuredTool:
        def call(**args: Any) -> str:
            if tool.writes and not card:
                known = agent.store.patient(str(args.get("patient_id", "")))
                card.update(name=tool.name, args=args, patient={"label": known.label if known else ""}, findings=[])
            result = agent.toolbox.call(tool.name, args, agent.tool_context())
            tools.append({"name": tool.name, "args": args, "ok": result["error"] is None})
            return "It waits for a person's approval." if tool.writes else str(result["formatted_result"])

        return StructuredTool.from_function(call, name=tool.name, description=tool.description, args_schema=tool.args)

    with warnings.catch_warnings(action="ignore"):  # its successor is in another package and does the same
        graph = create_react_agent(chat, [offered(tool) for tool in agent.toolbox])
    answer = ""
    with contextlib.suppress(GraphRecursionError):  # it never came to an answer; what it did counts
        told = {"messages": [("user", question)]}
        for state in graph.stream(told, {"recursion_limit": 2 * ROUNDS + 1}, stream_mode="values"):
            last = state["messages"][-1]
            answer = str(last.content) if isinstance(last, AIMessage) else ""
    asked = answer.rstrip().endswith("?")
    status = "needs_approval" if card else "needs_clarification" if asked else "answered"
    return {
        "answer": "" if answer == MORE_STEPS else answer, "tools": tools, "pending_write": card or None,
        "status": status, "llm_calls": len(chat.calls), "tokens": {
            kind: sum(getattr(call, f"{kind}_tokens") for call in chat.calls) for kind in ("prompt", "completion")
        },
    }  # fmt: skip
