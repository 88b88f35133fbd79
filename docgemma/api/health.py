"""What runs here and what it can reach, without an address, a path or a secret in it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docgemma import __version__
from docgemma.agent import Agent

KEPT_S = 5.0  # anybody may ask, so the stores are not asked each time
LIMIT_S = 5.0
NOBODY = "docgemma-health"  # no patient and no conversation has this id


class HealthCheck:
    def __init__(self, agent: Agent):
        self.agent = agent
        self._asking = asyncio.Lock()
        self._known: tuple[float, dict[str, Any]] | None = None

    async def report(self) -> dict[str, Any]:
        async with self._asking:
            if self._known is None or time.monotonic() - self._known[0] > KEPT_S:
                self._known = (time.monotonic(), await self._look())
            return self._known[1]

    async def _look(self) -> dict[str, Any]:
        agent = self.agent
        thread = {"configurable": {"thread_id": NOBODY}}
        store, memory = await asyncio.gather(
            _reachable(lambda: agent.store.patient(NOBODY)), _reachable(lambda: agent.memory.get_tuple(thread))
        )
        return {
            "status": "down" if not memory else "ok" if store else "degraded",
            "version": __version__,
            "model": Path(agent.llm.name).name,  # a model file's name, not where it lies
            "vision": agent.llm.vision,
            "graph": agent.graph_name,
            "sources": agent.settings.sources,
            "record_store": _word(store),
            "memory": _word(memory),
        }


async def _reachable(attempt: Callable[[], Any]) -> bool:
    try:
        await asyncio.wait_for(asyncio.to_thread(attempt), LIMIT_S)
    except Exception:  # whatever it is: what cannot be read is not reachable, and the body says no more than that
        return False
    return True


def _word(reachable: bool) -> str:
    return "reachable" if reachable else "unreachable"
