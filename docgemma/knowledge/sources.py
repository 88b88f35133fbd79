"""Which source of facts is used: the snapshot, the live services, or the live services with the snapshot behind."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from docgemma.errors import ToolError
from docgemma.knowledge.base import Answer, Article, DrugLabel, Interaction, Knowledge, Trial
from docgemma.settings import Settings

if TYPE_CHECKING:
    from docgemma.knowledge.snapshot import Snapshot

REST_S = 60.0  # a live service that failed is left alone this long, so that a clinic offline does not wait each time


def open_knowledge(settings: Settings) -> Knowledge:
    """What `settings.sources` says.

    Raises:
        StoreError: the snapshot is needed and cannot be read or built.
    """
    if settings.sources == "offline":
        return open_snapshot(settings)
    from docgemma.knowledge.live import LiveKnowledge

    live = LiveKnowledge(settings)
    return live if settings.sources == "live" else WithFallback(live, open_snapshot(settings))


def open_snapshot(settings: Settings) -> "Snapshot":
    """The snapshot that was built into the data home, else the shipped one."""
    from docgemma.knowledge.build import shipped_snapshot
    from docgemma.knowledge.drug_names import load_drug_names
    from docgemma.knowledge.snapshot import BUILT, Snapshot

    built = settings.home / BUILT
    path = built if built.is_file() else shipped_snapshot(settings.home)
    return Snapshot(path, load_drug_names())


class WithFallback:
    """Live first; where that fails in a way that a retry could mend, the snapshot, saying so.

    An outage is never "nothing found": where the snapshot has no answer either, the outage is raised.
    """

    def __init__(self, live: Knowledge, snapshot: Knowledge, clock: Callable[[], float] = time.monotonic):
        self.live, self.snapshot, self.clock = live, snapshot, clock
        self._failed: dict[str, tuple[float, ToolError]] = {}

    def label(self, drug_name: str) -> Answer[DrugLabel]:
        return self._ask("label", drug_name)

    def interactions(self, drug_names: list[str]) -> Answer[Interaction]:
        return self._ask("interactions", drug_names)

    def literature(self, query: str, limit: int = 5) -> Answer[Article]:
        return self._ask("literature", query, limit=limit)

    def trials(self, condition: str, status: str | None = None, limit: int = 5) -> Answer[Trial]:
        return self._ask("trials", condition, status=status, limit=limit)

    def generic_name(self, drug_name: str) -> str | None:
        known = self.snapshot.generic_name(drug_name)
        if not known and all(self.clock() - when > REST_S for when, _ in self._failed.values()):
            with suppress(ToolError):  # the live services are a second opinion on a name here
                return self.live.generic_name(drug_name)
        return known

    @property
    def quotes(self) -> Mapping[str, str]:
        return self.snapshot.quotes  # of shipped facts, whatever is asked live

    def close(self) -> None:
        self.live.close()
        self.snapshot.close()

    def _ask(self, method: str, *args: Any, **kwargs: Any) -> Answer[Any]:
        when, outage = self._failed.get(method, (0.0, None))
        if outage is None or self.clock() - when > REST_S:
            try:
                answer: Answer[Any] = getattr(self.live, method)(*args, **kwargs)
                self._failed.pop(method, None)
                return answer
            except ToolError as error:
                if not error.retryable:
                    raise
                outage = error
                self._failed[method] = self.clock(), error
        try:
            answer = getattr(self.snapshot, method)(*args, **kwargs)
        except ToolError as error:
            raise outage from error
        if not answer.records and method != "interactions":  # "none listed in this source" is an answer
            raise outage
        return replace(answer, fell_back=outage.error_type.value)
