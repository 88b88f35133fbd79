"""How relevant a trial looks for a patient, and the shortlist made of it. Age and sex rank down, they never drop."""

from typing import NamedTuple

from docgemma.prescreen.concepts import Key, key, load_concepts, relations, split
from docgemma.prescreen.records import Candidate, Evidence, Facts, Study
from docgemma.prescreen.screen import criteria_texts

OUTSIDE = 0.3  # of the relevance of a trial of that age and sex
EXCLUDED = 0.35  # where the criteria exclude whom the diagnosis names
ASIDE = 0.6  # what goes with a comorbid disease, of what goes with a symptom or a medicine
FOLLOWS = 0.5  # what a medicine or a phrase of a note leads to, of a finding
STATUSES = {
    "RECRUITING": 1.0,
    "NOT_YET_RECRUITING": 0.97,
    "ENROLLING_BY_INVITATION": 0.95,
    "ACTIVE_NOT_RECRUITING": 0.9,
}
ENDED = 0.85
SHORTLIST = 500


class Told(NamedTuple):
    """How relevant a trial looks, 0 to 1, and why: the patient's terms that it names, best first."""

    relevance: float
    terms: tuple[str, ...]
    fits: bool  # age and sex


class Belongs(NamedTuple):
    """A term of the patient: how it belongs, how near, and to which diagnosis or problem."""

    term: str
    relation: str
    nearness: float
    of: str


class Profile:
    """A patient's terms, each once, and what trials look like beside them."""

    def __init__(self, facts: Facts):
        self.facts = facts
        self.terms: dict[Key, Belongs] = {}
        main = facts["diagnoses"][:1]
        for diagnosis in facts["diagnoses"]:
            near = 1.0 if diagnosis in main else 0.7
            for term, relation, nearness in load_concepts().related(diagnosis):
                self._add(Belongs(term, relation, nearness * near, diagnosis))
            if load_concepts().kind_of(diagnosis) is None:  # by the company that it keeps
                beside = [*diagnosis.split(), *facts["findings"], *facts["comorbidities"], *facts["biomarkers"]]
                for term, relation, nearness in load_concepts().specialty(beside):
                    self._add(Belongs(term, relation, nearness * near, diagnosis))
        for problem in facts["comorbidities"]:
            self._add(Belongs(problem, "comorbidity", 1.0, problem))
            self._around(problem, 0.6)
        for finding in facts["findings"]:
            self._add(Belongs(finding, "finding", 1.0, finding))
            self._around(finding, 0.8)
        for marker in facts["biomarkers"]:
            self._add(Belongs(marker, "marks", 1.0, marker))
        for medicine in facts["prior_lines"]:
            self._add(Belongs(medicine, "medicine", 1.0, medicine))
            self._around(medicine, 0.8)
        self.names = {
            name for name, term in self.terms.items() if term.relation in ("is", "said") and term.nearness == 1
        }
        self._known: dict[str, Told] = {}

    def _around(self, term: str, near: float) -> None:
        """What a problem of the patient is also called, and is a kind of."""
        relation = "comorbidity" if near < 0.8 else "finding"
        concept = load_concepts().get(term)
        for related in load_concepts().related(term, depth=0):
            if concept and concept.lay and related.relation == "leads":
                self._add(Belongs(related.term, "finding", FOLLOWS, term))
            elif related.relation in ("up", "leads") and related.nearness == 1:
                self._add(Belongs(related.term, related.relation, near * (1 if near > 0.7 else ASIDE), term))
            elif related.relation == "said" and related.nearness == 1 and not (concept and concept.lay):
                self._add(Belongs(related.term, relation, near, term))

    def _add(self, term: Belongs) -> None:
        name = key(term.term)
        known = self.terms.get(name)
        if name and (known is None or _weight(known) < _weight(term)):
            self.terms[name] = term

    def of(self, study: Study) -> Told:
        """How relevant a trial looks. The same trial is looked at once, again when its criteria are fetched."""
        mark = f"{study['id']} {bool(study['criteria'])}"
        if mark not in self._known:
            self._known[mark] = self._look(study)
        return self._known[mark]

    def _look(self, study: Study) -> Told:
        named = {word for text in (study["title"], *study["keywords"], *study["conditions"]) for word in key(text)}
        treated = {word for text in study["interventions"] for word in key(text)}
        hits = sorted(
            (term for name, term in self.terms.items() if set(name) <= (treated if by_treatment(term) else named)),
            key=lambda term: (-_weight(term), term.term),
        )
        missed, told, covered = 1.0, [], set[str]()
        for term in hits:
            if (
                not set(key(term.term)) <= covered
            ):  # "pulmonary fibrosis" after "idiopathic pulmonary fibrosis" is no second
                missed *= 1 - _weight(term)
                told.append(term.term)
                covered |= set(key(term.term))
        relevance = 1 - missed
        if study["criteria"]:
            relevance = self._by_criteria(relevance, study["criteria"])
        fits = self._fits(study)
        return Told(relevance if fits else relevance * OUTSIDE, tuple(told[:3]), fits)

    def _by_criteria(self, relevance: float, criteria: str) -> float:
        """Criteria say best whom a trial takes: up where they name the diagnosis, down where they exclude it."""
        included, excluded = (_runs(part) for part in criteria_texts(criteria))
        if any(" ".join(name) in included for name in self.names):
            return max(relevance, 0.85)
        if any(" ".join(name) in excluded for name in self.names):
            return relevance * EXCLUDED
        return relevance

    def _fits(self, study: Study) -> bool:
        age, sex = self.facts["age"], self.facts["sex"]
        young = age is not None and study["min_age"] is not None and age + 1 <= study["min_age"]
        old = age is not None and study["max_age"] is not None and age > study["max_age"]
        return not (young or old or (sex and study["sex"] in ("MALE", "FEMALE") and study["sex"] != sex))


def rank(facts: Facts, evidence: Evidence, most: int = SHORTLIST) -> list[Candidate]:
    """The trials found, best first: relevance, independent hits, recruitment status."""
    profile, candidates = Profile(facts), []
    for study in evidence.studies.values():
        told, found_by = profile.of(study), evidence.found_by(study["id"])
        hits = 1 - 0.5 ** min(len(found_by), 6)
        score = (0.8 * told.relevance + 0.2 * hits * told.relevance) * STATUSES.get(study["status"], ENDED)
        candidates.append(Candidate(
            nct_id=study["id"], title=study["title"], score=round(score, 4), reason=_reason(told, len(found_by)),
            status=study["status"], found_by=found_by, criteria=[],
        ))  # fmt: skip
    return sorted(candidates, key=lambda item: (-item["score"], item["nct_id"]))[:most]


def _weight(term: Belongs) -> float:
    return float(relations()[term.relation]["weight"]) * term.nearness


def by_treatment(term: Belongs) -> bool:
    return term.relation in ("with", "medicine")


def _runs(text: str) -> str:
    """The words of a text in one spelling, to look for a name in."""
    return f" {' '.join(' '.join(key(word)) for word in split(text))} "


def _reason(told: Told, hits: int) -> str:
    names = f"names {', '.join(told.terms)}" if told.terms else "names nothing of the note"
    times = f"found by {hits} searches" if hits > 1 else "found by one search"
    return f"{names}; {times}" + ("" if told.fits else "; age or sex outside its limits")
