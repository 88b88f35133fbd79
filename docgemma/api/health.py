"""What runs here and what it can reach, without an address, a path or a secret in it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig

from docgemma import __version__
from docgemma.agent import Agent

KEPT_S = 5.0  # anybody may ask, so the stores are not asked each time
LIMIT_S = 5.0
NOBODY = "docgemma-health"  # no patient and no conversation has this id


class HealthCheck:
    """Args: agent: whose stores are asked."""

    def __init__(self, agent: Agent):
        self.agent = agent
        self._asking = asyncio.Lock()
        self._known: tuple[float, dict[str, Any]] = (-KEPT_S, {})

    async def report(self) -> dict[str, Any]:
        """What `models.Health` says."""
        async with self._asking:
            if time.monotonic() - self._known[0] > KEPT_S:
                self._known = (time.monotonic(), await self._look())
            return self._known[1]

    async def _look(self) -> dict[str, Any]:
        agent, thread = self.agent, RunnableConfig(configurable={"thread_id": NOBODY})
        store = await _reach(lambda: agent.store.patient(NOBODY))
        memory = await _reach(lambda: agent.memory.get_tuple(thread))
        status = "ok" if store == "reachable" else "degraded"
        return {
            "status": status if memory == "reachable" else "down",
            "version": __version__,
            "model": Path(agent.llm.name).name,  # a model file's name, not where it lies
            "vision": agent.llm.vision,
            "graph": agent.graph_name,
            "sources": agent.settings.sources,
            "record_store": store,
            "memory": memory,
        }


async def _reach(attempt: Callable[[], Any]) -> str:
    try:
        await asyncio.wait_for(asyncio.to_thread(attempt), LIMIT_S)
    except Exception:  # whatever it is: what cannot be read is not reachable, and the body says no more than that
        return "unreachable"
    return "reachable"
