"""Conversation ids of the API: each begins with its owner's name, so nobody else's id opens anything."""

import re
import secrets

from docgemma.nodes.context import Actor

ID = re.compile(r"api\.[a-z0-9_-]{1,32}\.[A-Za-z0-9_-]{24}")


def prefix(owner: Actor) -> str:
    return f"api.{owner.name}."


def new_thread(owner: Actor) -> str:
    return prefix(owner) + secrets.token_urlsafe(18)


def owns(owner: Actor, thread: str) -> bool:
    """Whether the id was given to this caller. Ids of the command line and the demo belong to no caller."""
    return ID.fullmatch(thread) is not None and thread.startswith(prefix(owner))
