"""The local orchestrator: code owns the strategy, the concept graph and the results supply the vocabulary.

Every term of the patient is expected to bring some new relevant trials, by how it belongs to the patient and by what
its words have met so far. A search finds every trial that names all of its words, so "failure" also finds "heart
failure" and "renal failure": the next search is the words whose unexplored terms promise most together. Terms that
relevant trials name join the others. Nothing is kept between turns: a resumed run chooses the same.
"""

from docgemma.errors import RETRYABLE
from docgemma.prescreen.concepts import prompts
from docgemma.prescreen.rank import Profile
from docgemma.prescreen.records import Evidence, Facts, ToolCall
from docgemma.prescreen.yields import State

LEAST = 0.25  # expected new relevant trials; below, the search ends
OUTAGE = 2  # searches that fail one after the other end the run


class Local:
    """Decides the next search from the facts and the evidence.

    Args:
        expert: a medical model can be asked, once, at the start.
        feedback: conditions and keywords of the trials found give terms.
    """

    def __init__(self, expert: bool = False, feedback: bool = True):
        self.expert, self.feedback = expert, feedback
        self._profile: Profile | None = None

    def next_calls(self, facts: Facts, evidence: Evidence, left: int) -> list[ToolCall]:
        """The next call, alone; [] where nothing promising is left, or where the registry is down."""
        if self._profile is None or self._profile.facts != facts:
            self._profile = Profile(facts)
        last = [search.get("error", "").partition(":")[0] for search in evidence.searches[-OUTAGE:]]
        if len(last) == OUTAGE and all(error in RETRYABLE for error in last):
            return []
        if self.expert and not any(s["tool"] == "consult_medical_expert" for s in evidence.searches):
            return [_ask_expert(facts)]
        call = self.best(self._profile, evidence)
        return [call] if call else []

    def best(self, profile: Profile, evidence: Evidence) -> ToolCall | None:
        """The call with the highest expected gain; of equals the first by name."""
        state = State(profile, evidence, self.feedback)
        gains = [(gain, state.search(query, field, covered, gain)) for query, field, covered, gain in state.queries()]
        gains += [(gain, state.page(search, gain)) for search in evidence.searches if (gain := state.next_page(search))]
        best = min(gains, key=lambda item: (-round(item[0], 6), str(item[1]["args"])), default=None)
        return best[1] if best and best[0] >= LEAST else None


def _ask_expert(facts: Facts) -> ToolCall:
    question = prompts()["vocabulary"].format(
        age=facts["age"] if facts["age"] is not None else "unknown", sex=facts["sex"].lower() or "unknown",
        diagnoses=", ".join([*facts["diagnoses"], *filter(None, [facts["stage"]])]) or "unknown",
        biomarkers=", ".join(facts["biomarkers"]) or "none given",
        others=", ".join([*facts["comorbidities"], *facts["findings"]]) or "none given",
    )  # fmt: skip
    return ToolCall(tool="consult_medical_expert", args={"question": question}, why="vocabulary of the registry")
