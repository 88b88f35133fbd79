"""The local orchestrator with parts switched off, to measure what each of them brings."""

from collections.abc import Callable
from functools import partial

from docgemma.prescreen.concepts import load_concepts
from docgemma.prescreen.next_search import Local
from docgemma.prescreen.rank import Profile
from docgemma.prescreen.records import Evidence, ToolCall
from docgemma.prescreen.registry import LARGEST_PAGE


class Flat(Local):
    """The old design: one list of searches, made before the first of them, in order."""

    def best(self, profile: Profile, evidence: Evidence) -> ToolCall | None:
        """The next of the list: each diagnosis, its other names, broader and narrower ones, its treatments."""
        terms = [
            (related.term, "intervention" if relation == "with" else "condition")
            for diagnosis in profile.facts["diagnoses"] for relation in ("is", "said", "up", "down", "with")
            for related in load_concepts().related(diagnosis, depth=1)
            if related.relation == relation and (related.nearness == 1 or relation != "up")
        ]  # fmt: skip
        for term, field in list(dict.fromkeys(terms))[len(evidence.searches) :]:
            return ToolCall(tool="search_trials", args={field: term, "page_size": LARGEST_PAGE}, why="of the checklist")
        return None


class Filtered(Local):
    """Every search with the registry's age and sex filters."""

    def best(self, profile: Profile, evidence: Evidence) -> ToolCall | None:
        if call := super().best(profile, evidence):
            call["args"] |= {"age": profile.facts["age"], "sex": profile.facts["sex"]}
        return call


ABLATIONS: dict[str, Callable[[bool], Local]] = {  # given whether there is an expert; the flat list asks nobody
    "full": Local, "no-expert": Local, "no-feedback": partial(Local, feedback=False), "flat": lambda expert: Flat(),
    "filters": Filtered,
}  # fmt: skip
