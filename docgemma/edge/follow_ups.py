"""Turns that only the last one explains: "and amiodarone?", "start it, 5 mg bd"."""

from docgemma.edge.lexicon import Lexicon
from docgemma.edge.questions import Case, Questions
from docgemma.edge.slots import Slots
from docgemma.edge.templates import Filled, fill, load


class FollowUps:
    """Makes cases whose question leans on the user's last message."""

    def __init__(self, lexicon: Lexicon, questions: Questions):
        self.words, self.questions = lexicon, questions
        self.patterns = dict(line.split(": ", 1) for line in load("follow_ups"))

    def any(self) -> Case:
        kinds = (self.next_drug, self.with_drug, self.next_trials, self.next_papers, self.order_it, self.next_id)
        return self.words.pick(kinds)()

    def next_drug(self) -> Case:
        """ "And X?" after a question on one drug's safety."""
        slots = Slots(self.words, "id")
        before = self._before("check_drug_safety", slots)
        made = self._fill("next_drug", slots)
        return self._case(made, before, "check_drug_safety", {"drug_name": slots.drugs[1]})

    def with_drug(self) -> Case:
        slots = Slots(self.words, "id")
        before = self._before("check_drug_safety", slots)
        made = self._fill("with_drug", slots)
        return self._case(made, before, "check_drug_interactions", {"drug_names": slots.drugs[:2]})

    def next_trials(self) -> Case:
        slots = Slots(self.words, "id")
        before = self._before("find_clinical_trials", Slots(self.words, "id"))
        made = self._fill("next_trials", slots)
        args = {"condition": made.slots["cond"], "status": made.slots.get("status")}
        return self._case(made, before, "find_clinical_trials", args)

    def next_papers(self) -> Case:
        before = self._before("search_medical_literature", Slots(self.words, "id"))
        made = self._fill("next_papers", Slots(self.words, "id"))
        return self._case(made, before, "search_medical_literature", {"query": made.slots["topic"]})

    def order_it(self) -> Case:
        """ "Start it, 5 mg bd" after a question on that drug, with a patient in mind."""
        slots = Slots(self.words, "pronoun")
        before = self._before("check_drug_safety", slots)
        made = self._fill("order_it", slots)
        args = {
            "patient_id": slots.id,
            "medication_name": slots.drugs[0],
            "dosage": made.slots["dose"],
            "frequency": made.slots["freq"],
            "notes": None,
        }
        return self._case(made, before, "prescribe_medication", args, (slots.id, slots.name))

    def next_id(self) -> Case:
        old, new = Slots(self.words, "id"), Slots(self.words, "id")
        before = fill(self.questions.pattern("get_patient_chart", "id"), self.words, old).text
        made = self._fill("next_id", new)
        return self._case(made, before, "get_patient_chart", {"patient_id": new.id}, (old.id, old.name))

    def _before(self, tool: str, slots: Slots) -> str:
        return fill(self.words.pick(load(tool)), self.words, slots).text

    def _fill(self, kind: str, slots: Slots) -> Filled:
        return fill(self.patterns[kind], self.words, slots)

    @staticmethod
    def _case(made: Filled, before: str, tool: str, args: dict, patient: tuple[str, str] | None = None) -> Case:
        return Case(made.text, [(tool, args)], before, patient, kind="follow_up")
