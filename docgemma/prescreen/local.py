"""The local orchestrator: code owns the strategy, the concept graph and the results supply the vocabulary.

Each next search is the unexplored term that promises most NEW relevant trials: a prior by how the term belongs to the
patient, scaled by what such terms have brought so far, plus the relevant trials already seen that name it (where four
have been met in passing, more are likely). It keeps nothing between turns, so that a resumed run chooses the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rapidfuzz import fuzz

from docgemma.errors import RETRYABLE
from docgemma.prescreen.concepts import Key, key, load_concepts, within, words_file
from docgemma.prescreen.rank import Profile
from docgemma.prescreen.records import Evidence, Facts, Search, Study, ToolCall
from docgemma.prescreen.registry import LARGEST_PAGE

Field = Literal["condition", "intervention", "eligibility_keywords"]
# relevant trials that a first search of such a term is expected to bring, before anything is known
PRIOR = {
    "is": 30.0, "criteria": 14.0, "up": 9.0, "said": 7.0, "leads": 6.0, "signs": 6.0, "care": 5.0, "comorbidity": 6.0,
    "finding": 6.0, "marks": 4.0, "with": 4.0, "medicine": 4.0, "expert": 6.0, "down": 2.5, "shorter": 5.0, "seen": 0.0,
}  # fmt: skip
SAID = {
    "is": "the diagnosis", "criteria": "the diagnosis, in the criteria", "up": "a broader term of", "said": "a synonym of",
    "leads": "a complication of", "signs": "a presentation of", "care": "what is treated in patients with",
    "comorbidity": "a problem of the note", "finding": "a finding of the note", "marks": "a biomarker of",
    "with": "a treatment of", "medicine": "a medicine of the note", "expert": "named by the expert for",
    "down": "a narrower term of", "shorter": "the broader form of", "seen": "named by trials found for",
}  # fmt: skip
BELIEF = 2.0  # searches' worth of weight that a prior keeps beside what was observed
UNMET = 1.0  # unseen relevant trials for each seen one that names a term
RELEVANT = 0.35  # from which a trial teaches terms
NEAR_DUPLICATE = 92  # of 100
LEAST = 0.3  # expected new relevant trials; below, the search ends
EXPERT_TERMS = 15
OUTAGE = 2  # searches that fail one after the other end the run
QUESTION = """\
Which condition terms should be searched on ClinicalTrials.gov for this patient? Give broader categories, presentations,
complications and comorbid conditions under which trials that would take the patient are registered, one term a line.
Age {age}, sex {sex}. Diagnoses: {diagnoses}. Biomarkers: {biomarkers}. Other problems: {others}."""


@dataclass
class Option:
    """A term that may be searched next."""

    term: str
    field: Field
    relation: str
    nearness: float
    of: str

    @property
    def words(self) -> Key:
        return key(self.term)


class Local:
    """Decides the next search from the facts and the evidence.

    Args:
        expert: a medical model can be asked, once, at the start.
        feedback: conditions and keywords of the trials found give terms.
        flat: the old design: one list, made before the first search, in order.
        filters: search with the registry's age and sex filters.
    """

    def __init__(self, *, expert: bool = False, feedback: bool = True, flat: bool = False, filters: bool = False):
        self.expert, self.feedback, self.flat, self.filters = expert, feedback, flat, filters
        self._profile: Profile | None = None

    def next_calls(self, facts: Facts, evidence: Evidence, left: int) -> list[ToolCall]:
        """The next call, alone; [] where nothing promising is left."""
        if self._profile is None or self._profile.facts != facts:
            self._profile = Profile(facts)
        if [search.get("error") for search in evidence.searches[-OUTAGE:] if search.get("error", "").split(":")[0] in RETRYABLE][OUTAGE - 1 :]:
            return []  # the registry is down
        if self.expert and not self.flat and not any(s["tool"] == "consult_medical_expert" for s in evidence.searches):
            return [_ask_expert(facts)]
        call = self._checklist(facts, evidence) if self.flat else self._best(facts, evidence)
        if call and self.filters:
            call["args"] |= {"age": facts["age"], "sex": facts["sex"]}
        return [call] if call else []

    def _checklist(self, facts: Facts, evidence: Evidence) -> ToolCall | None:
        """The next of a fixed list: each diagnosis, what it is also called, its kinds, its treatments."""
        terms = [
            (related.term, related.relation) for diagnosis in facts["diagnoses"]
            for wanted in ("is", "said", "down", "with") for related in load_concepts().related(diagnosis, depth=0)
            if related.relation == wanted
        ]  # fmt: skip
        terms = list(dict.fromkeys(terms))[len(evidence.searches) :][:1]
        field = {"with": "intervention"}
        return next((
            ToolCall(tool="search_trials", args={field.get(relation, "condition"): term, "page_size": LARGEST_PAGE},
                     why="next of the checklist") for term, relation in terms), None)  # fmt: skip

    def _best(self, facts: Facts, evidence: Evidence) -> ToolCall | None:
        """The call with the highest expected gain; of equals the first by name."""
        state = _State(self._profile or Profile(facts), evidence)
        options = [*self._options(facts, evidence), *(state.learned() if self.feedback else ())]
        best: tuple[float, str, ToolCall] | None = None
        for option in options:
            gain, because = state.expected(option)
            if best is None or (-gain, option.term) < (-best[0], best[1]):
                of = f" {option.of}" if option.of and option.of != option.term else ""
                args: dict[str, Any] = {option.field: option.term, "page_size": LARGEST_PAGE}
                why = f"{SAID[option.relation]}{of}; {because}"
                best = (gain, option.term, ToolCall(tool="search_trials", args=args, why=why))
        for search in evidence.searches:
            gain = state.next_page(search)
            if gain and (best is None or gain > best[0]):
                args = search["args"] | {"page_token": search["next_token"]}
                why = f"the next page of a term that brought relevant trials; about {gain:.0f} more are expected"
                best = (gain, "", ToolCall(tool="search_trials", args=args, why=why))
        return best[2] if best and best[0] >= LEAST else None

    def _options(self, facts: Facts, evidence: Evidence) -> Iterator[Option]:
        """Terms from the note and the concept graph, from the expert, and what they end with."""
        profile = self._profile or Profile(facts)
        main = facts["diagnoses"][0] if facts["diagnoses"] else ""
        for name, term in profile.terms.items():
            field: Field = "intervention" if term.relation in ("with", "medicine") else "condition"
            yield Option(term.term, field, term.relation, term.nearness, term.of)
            if term.relation in ("is", "said") and term.of == main and term.nearness == 1:
                yield Option(term.term, "eligibility_keywords", "criteria", 1.0 if term.relation == "is" else 0.3, main)
            for size in range(len(name) - 1, 0, -1) if field == "condition" else ():
                if size > 1 or name[-1] in load_concepts().vocabulary:
                    yield Option(" ".join(name[-size:]), "condition", "shorter", term.nearness * 0.7, term.term)
        for search in evidence.searches:
            for said in _listed(search.get("answer", "")):
                yield Option(said, "condition", "expert", 1.0, main)


class _State:
    """What the searches so far say about terms: which are done, and what each kind of term has brought."""

    def __init__(self, profile: Profile, evidence: Evidence):
        self.profile, self.evidence = profile, evidence
        self.studies = [(study, profile.of(study).relevance) for study in evidence.studies.values()]
        self.by_word: dict[Field, dict[str, set[int]]] = {"condition": defaultdict(set), "intervention": defaultdict(set)}
        for number, (study, _) in enumerate(self.studies):
            for field, texts in _named(study).items():
                for word in {word for text in texts for word in key(text)}:
                    self.by_word[field][word].add(number)
        self.done = [search for search in evidence.searches if search["tool"] == "search_trials" and "error" not in search]
        self.tried = [_asked(search) for search in evidence.searches if search["tool"] == "search_trials"]
        self.scale = self._scales()

    def _scales(self) -> dict[str, float]:
        """What terms of each relation brought, of what was expected of them."""
        got: dict[str, list[float]] = defaultdict(list)
        for search in self.done:
            relation = search["why"].partition(";")[0]
            name = next((name for name, said in SAID.items() if relation.startswith(said)), "")
            if name and not search["args"].get("page_token"):
                got[name].append(sum(self.profile.of(self.evidence.studies[trial]).relevance for trial in search["new"]))
        return {
            name: (sum(brought) + BELIEF * PRIOR[name]) / ((len(brought) + BELIEF) * PRIOR[name])
            for name, brought in got.items() if PRIOR[name]
        }  # fmt: skip

    def expected(self, option: Option) -> tuple[float, str]:
        """New relevant trials that a search is expected to bring, and why in words."""
        if not option.words or self._explored(option):
            return 0.0, ""
        known = self._naming(option)
        met = sum(relevance for relevance in known if relevance >= RELEVANT)
        prior = PRIOR[option.relation] * option.nearness * self.scale.get(option.relation, 1.0)
        precision = (sum(known) + 2.0) / (len(known) + 3.0)  # of the trials that name it; 2/3 where none is known
        gain = (prior + UNMET * met) * min(1.0, precision * 1.5)
        because = f"{len([one for one in known if one >= RELEVANT])} relevant trials found so far name it, about {gain:.0f} new expected"
        return gain, because

    def _naming(self, option: Option) -> list[float]:
        """Relevance of the seen trials that a search for the term would return."""
        field: Field = "intervention" if option.field == "intervention" else "condition"
        if option.field == "eligibility_keywords":
            return []
        sets = [self.by_word[field].get(word, set()) for word in option.words]
        return [self.studies[number][1] for number in sorted(set.intersection(*sets))]

    def _explored(self, option: Option) -> bool:
        """Whether an earlier search returned all that this one could, or was for nearly the same."""
        for field, words, whole in self.tried:
            if field == option.field and (words == option.words or (whole and within(words, option.words))):
                return True
            alike = fuzz.token_sort_ratio(" ".join(words), " ".join(option.words)) >= NEAR_DUPLICATE
            if field == option.field and alike:
                return True
        return False

    def next_page(self, search: Search) -> float:
        """New relevant trials on the page behind one that was fetched; 0 where it was fetched, or is none."""
        later = any(other["args"].get("page_token") == search["next_token"] for other in self.evidence.searches)
        if not search["next_token"] or later or not search["returned"]:
            return 0.0
        relevance = [self.profile.of(self.evidence.studies[trial]).relevance for trial in search["new"]]
        rest = min(LARGEST_PAGE, (search["total"] or 2 * LARGEST_PAGE) - LARGEST_PAGE)
        return 0.8 * rest * sum(one for one in relevance if one >= RELEVANT) / len(search["returned"])

    def learned(self) -> Iterator[Option]:
        """Conditions, keywords and treatments that relevant trials name, and what those end with."""
        weights: dict[tuple[Field, str], float] = defaultdict(float)
        for study, relevance in self.studies:
            if relevance >= RELEVANT:
                for field, texts in _named(study).items():
                    for text in dict.fromkeys(texts[1:]):  # without the title
                        for term in _endings(text) if field == "condition" else [" ".join(text.split()[:3])]:
                            weights[field, term] += relevance
        main = self.profile.facts["diagnoses"][:1]
        best = sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:150]
        for (field, term), _ in best:
            if key(term) not in self.profile.terms:
                yield Option(term, field, "seen", 1.0, main[0] if main else "")


def _named(study: Study) -> dict[Field, list[str]]:
    return {
        "condition": [study["title"], *study["conditions"], *study["keywords"]],
        "intervention": [study["title"], *study["interventions"]],
    }


def _endings(text: str) -> list[str]:
    """ "malignant pleural effusion" -> itself, "pleural effusion", "effusion": each finds more. No bare adjectives."""
    words = text.split()
    stops = set(map(str, words_file()["stops"]))
    shorter = [" ".join(words[at:]) for at in range(1, len(words))]
    return [text, *(one for one in shorter if len(one) > 4 and one.split()[0].casefold() not in stops)] if len(words) < 7 else []


def _asked(search: Search) -> tuple[str, Key, bool]:
    """The field and the words of a search, and whether all that it could return was returned."""
    for field in ("condition", "intervention", "eligibility_keywords"):
        if said := search["args"].get(field):
            return field, key(str(said)), not search["next_token"] and "error" not in search
    return "", (), False


def _listed(answer: str) -> Iterable[str]:
    """The terms of an answer of one term a line, or between commas."""
    parts = (part.strip(" -*•.0123456789)\t\"'") for line in answer.splitlines() for part in line.split(","))
    return list(dict.fromkeys(part for part in parts if part and len(part.split()) <= 5))[:EXPERT_TERMS]


def _ask_expert(facts: Facts) -> ToolCall:
    question = QUESTION.format(
        age=facts["age"] if facts["age"] is not None else "unknown", sex=facts["sex"].lower() or "unknown",
        diagnoses=", ".join([*facts["diagnoses"], *filter(None, [facts["stage"]])]) or "unknown",
        biomarkers=", ".join(facts["biomarkers"]) or "none given",
        others=", ".join([*facts["comorbidities"], *facts["findings"]]) or "none given",
    )  # fmt: skip
    return ToolCall(tool="consult_medical_expert", args={"question": question}, why="vocabulary of the registry")
