"""What searches are expected to bring, from how terms belong to the patient and from what earlier searches brought."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from docgemma.prescreen.concepts import key, load_concepts, relations, split, word_lists
from docgemma.prescreen.rank import Profile, by_treatment
from docgemma.prescreen.records import Evidence, Search, Study, ToolCall
from docgemma.prescreen.registry import LARGEST_PAGE

Field = Literal["condition", "intervention", "eligibility_keywords"]
MOST_LEARNED = 3.0  # expected of one term that was learned from results
KEYWORD = 0.5  # what a keyword tells, of a condition
ONE_SEARCH = 0.4  # of it, where all the trials that name the term came from one search
RELEVANT = 0.35  # from which a trial teaches terms
CROWDED = 0.6  # of the gain is lost for each word that is left out, where searches fill their pages
TAIL = 1.06  # what each such word adds where they do not, if the rest is a name of the patient's as well
OTHER_NAME = 0.3  # of what is expected: registries know abbreviations, and other names of a problem
EXPERT_TERMS = 15
LEARNED = 120


@dataclass(frozen=True)
class Option:
    """A term that relevant trials may be registered under. `expected`: new ones that it alone should bring."""

    term: str
    field: Field
    relation: str
    expected: float
    of: str

    @property
    def words(self) -> frozenset[str]:
        return frozenset(key(self.term))


class State:
    """What the searches so far say: what is explored, and which terms promise more."""

    def __init__(self, profile: Profile, evidence: Evidence, feedback: bool):
        self.profile, self.evidence = profile, evidence
        self.relevance = {trial: profile.of(study).relevance for trial, study in evidence.studies.items()}
        self.naming: dict[tuple[Field, str], set[str]] = defaultdict(set)
        for study in evidence.studies.values():
            for field, words in _words(study).items():
                for word in words:
                    self.naming[field, word].add(study["id"])
        searches = [search for search in evidence.searches if search["tool"] == "search_trials"]
        self.tried = [_asked(search) for search in searches]
        full = [bool(search["next_token"]) for search in searches if not search["args"].get("page_token")]
        self.keep = 1 - CROWDED * (sum(full) / max(4, len(full)) if full else 1)  # first the diagnosis as it is named
        self.options = [option for option in (*self._known(), *(self._learned() if feedback else ())) if option.words]

    def _met(self, field: Field, words: Iterable[str]) -> list[float]:
        """Relevance of the seen trials that a search for the words would return."""
        sets = [
            self.naming.get(("intervention" if field == "intervention" else "condition", word), set()) for word in words
        ]
        return [self.relevance[trial] for trial in sorted(set.intersection(*sets))] if sets else []

    def _known(self) -> Iterator[Option]:
        """Terms of the note, the concept graph and the expert."""
        main = self.profile.facts["diagnoses"][:1]
        for term in self.profile.terms.values():
            field: Field = "intervention" if by_treatment(term) else "condition"
            expected = _prior(term.relation) * term.nearness
            if term.relation in ("said", "comorbidity", "finding") and (
                term.term != term.of and (term.relation != "said" or key(term.term) in load_concepts().spelled)
            ):
                expected *= OTHER_NAME
            yield Option(term.term, field, term.relation, expected, term.of)
            if term.relation == "is" and [term.of] == main:
                yield Option(term.term, "eligibility_keywords", "criteria", _prior("criteria"), term.of)
        for search in self.evidence.searches:
            for said in _listed(search.get("answer", "")):
                yield Option(said, "condition", "expert", _prior("expert"), "".join(main))

    def _learned(self) -> Iterator[Option]:
        """Conditions and keywords that relevant trials name, the more so if several searches met them."""
        weights: dict[str, float] = defaultdict(float)
        met_by: dict[str, set[int]] = defaultdict(set)
        first = {trial: number for number, search in enumerate(self.evidence.searches) for trial in search["new"]}
        spelled: dict[tuple[str, ...], str] = {}
        for trial, study in self.evidence.studies.items():
            for text in dict.fromkeys([*study["conditions"], *study["keywords"]]):
                if self.relevance[trial] >= RELEVANT and key(text) not in self.profile.terms:
                    worth = 1.0 if text in study["conditions"] else KEYWORD
                    weights[spelled.setdefault(key(text), text)] += worth * self.relevance[trial]
                    met_by[spelled[key(text)]].add(first.get(trial, -1))
        main = "".join(self.profile.facts["diagnoses"][:1])
        for text, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:LEARNED]:
            once = ONE_SEARCH if len(met_by[text]) == 1 else 1.0
            yield Option(text, "condition", "seen", min(MOST_LEARNED, _prior("seen") * weight) * once, main)

    def _rest(self, field: Field, words: frozenset[str]) -> float:
        """The share of what a term would bring that no earlier search returned: 0, 1, or half where pages are left."""
        rest = 1.0
        for done, said, whole in self.tried:
            if done == field and said and said <= words:
                rest = min(rest, 0.0 if whole or said == words else 0.5)
        return rest

    def queries(self) -> Iterator[tuple[str, Field, list[Option], float]]:
        """Words to search for, the terms that they cover, and the new relevant trials that are expected."""
        left = [(option, rest) for option in self.options if (rest := self._rest(option.field, option.words))]
        index: dict[tuple[Field, str], list[tuple[Option, float]]] = defaultdict(list)
        for option, rest in left:
            for word in option.words:
                index[option.field, word].append((option, rest))
        seen = set()
        for option, _ in left:
            for said in _parts(option.term) if option.field == "condition" else [option.term]:
                words = frozenset(key(said))
                if not words or (option.field, words) in seen or self._rest(option.field, words) == 0:
                    continue
                seen.add((option.field, words))
                rarest = min((index[option.field, word] for word in words), key=len)
                covered = [pair for pair in rarest if words <= pair[0].words]
                dropped = min(len(one.words) for one, _ in covered) - len(words)
                met = self._met(option.field, words)
                precision = (sum(met) + 2.0) / (len(met) + 2.5)
                factor = TAIL if _wider(option.term, said, key(said) in self.profile.terms) else 1.0
                promised = sum(one.expected * part for one, part in covered) * (self.keep * factor) ** dropped
                gain = promised * min(1.0, 1.3 * precision)
                yield said, option.field, [one for one, _ in covered], min(gain, LARGEST_PAGE * 1.0)

    def search(self, query: str, field: Field, covered: Sequence[Option], gain: float) -> ToolCall:
        best = max(covered, key=lambda option: (option.expected, option.term))
        said, of = relations()[best.relation]["said"], f" {best.of}" if best.of and best.of != best.term else ""
        more = f", and {len(covered) - 1} more terms" if len(covered) > 1 else ""
        why = f"{best.term}: {said}{of}{more}; about {gain:.1f} new relevant trials expected"
        return ToolCall(tool="search_trials", args={field: query, "page_size": LARGEST_PAGE}, why=why)

    def page(self, search: Search, gain: float) -> ToolCall:
        args: dict[str, Any] = search["args"] | {"page_token": search["next_token"]}
        why = f"the next page of a search that brought relevant trials; about {gain:.1f} more expected"
        return ToolCall(tool="search_trials", args=args, why=why)

    def next_page(self, search: Search) -> float:
        """New relevant trials on the page behind one that was fetched; 0 where it was fetched, or is none."""
        later = any(other["args"].get("page_token") == search["next_token"] for other in self.evidence.searches)
        if not search["next_token"] or later or not search["returned"]:
            return 0.0
        relevant = sum(one for trial in search["new"] if (one := self.relevance[trial]) >= RELEVANT)
        rest = min(LARGEST_PAGE, search["total"] - LARGEST_PAGE if search["total"] else LARGEST_PAGE)
        return 0.6 * rest * relevant / len(search["returned"])


def _prior(relation: str) -> float:
    """New relevant trials that are expected of a term before anything is known."""
    return float(relations()[relation]["expected"])


def _words(study: Study) -> dict[Field, set[str]]:
    texts: dict[Field, list[str]] = {
        "condition": [study["title"], *study["conditions"], *study["keywords"]],
        "intervention": [study["title"], *study["keywords"], *study["interventions"]],
    }
    return {field: {word for text in listed for word in key(text)} for field, listed in texts.items()}


@lru_cache(maxsize=20_000)
def _wider(term: str, said: str, known: bool) -> bool:
    """Whether shorter words are the patient's as well: "dyspnea" of "exertional dyspnea", "lung" of "lung disease"."""
    left_out = set(key(term)) - set(key(said))
    return left_out <= word_lists()["generic_keys"] or (known and term.endswith(said))


@lru_cache(maxsize=20_000)
def _parts(term: str) -> tuple[str, ...]:
    """A term and the runs of words in it that still mean something: "heart failure", "heart", "failure"."""
    words = [word for word in split(term) if key(word)]
    runs = [words[first:behind] for first in range(len(words)) for behind in range(len(words), first, -1)]
    return tuple(dict.fromkeys([term, *(" ".join(run) for run in runs if _means(run))]))


def _means(run: Sequence[str]) -> bool:
    """Whether words name something: not only generic ones, none of them a stop word at an end, none too short."""
    stops = word_lists()["stops"]
    vague = word_lists()["generic"] | stops
    lowered = [word.casefold() for word in run]
    telling = [word for word in lowered if word not in vague and len(word) > 3 and not word.isdigit()]
    return bool(telling) and lowered[0] not in stops and lowered[-1] not in stops


def _asked(search: Search) -> tuple[str, frozenset[str], bool]:
    """The field and the words of a search, and whether all that it could return was returned."""
    for field in ("condition", "intervention", "eligibility_keywords"):
        if said := search["args"].get(field):
            return field, frozenset(key(str(said))), not search["next_token"] and "error" not in search
    return "", frozenset(), False


def _listed(answer: str) -> Iterable[str]:
    """The terms of an answer of one term a line, or between commas."""
    parts = (part.strip(" -*•.0123456789)\t\"'") for line in answer.splitlines() for part in line.split(","))
    return list(dict.fromkeys(part for part in parts if part and len(part.split()) <= 5))[:EXPERT_TERMS]
