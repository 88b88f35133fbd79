"""A conversation with the agent, message after message."""

from typing import Any

from docgemma.agent import Agent


def spoken(agent: Agent, *messages: str) -> dict[str, Any]:
    """The report of the last message; APPROVE approves the entry that waits."""
    thread, done = None, dict[str, Any]()
    for message in messages:
        done = agent.decide(str(thread), "approve") if message == "APPROVE" else agent.ask(message, thread=thread)
        thread = done["thread"]
    return done
