"""The concept graph of `data/prescreen`: other names of a diagnosis, what it is a kind of, shows as and leads to."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from docgemma.paths import data_yaml
from docgemma.text.words import clinical, plain

Key = tuple[str, ...]  # words in one spelling, for comparing
LISTS = ("said", "kin", "up", "down", "signs", "leads", "with", "marks")
FAR = 0.6  # what an inherited relation is worth, of a direct one
LONGEST = 7  # words of a term


class Related(NamedTuple):
    """A term and how it belongs to a concept: one of LISTS, "is", or "care" (what a whole specialty treats)."""

    term: str
    relation: str
    nearness: float


class Mention(NamedTuple):
    """A concept in a text, by its words: words[first:behind]."""

    concept: "Concept"
    first: int
    behind: int


@dataclass(frozen=True)
class Concept:
    """One line of concepts.yaml. `finding`: a symptom or sign, nobody's main diagnosis. `lay`: registries use its name,
    notes use others."""

    name: str
    group: str = ""
    finding: bool = False
    lay: bool = False
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False, compare=False)


class Concepts:
    """Every concept by each of its names, and what each specialty has in common."""

    def __init__(self, groups: Iterable[dict[str, Any]]):
        self.named: dict[Key, Concept] = {}
        self._care: dict[str, list[str]] = {}
        self._up: dict[str, list[str]] = {}
        self._shown = defaultdict[Key, set[str]](set)  # finding -> the specialties whose diseases have it
        self.abbreviated: set[Key] = set()  # names that are read only as they are written, in capitals
        self.spelled: dict[Key, str] = {}  # abbreviation -> the name that stands before it
        listed: list[tuple[str, Concept]] = []
        for group in groups:
            name = group["group"]
            self._care[name], self._up[name] = group.get("care", []), group.get("up", [])
            for line in group["concepts"]:
                lists = {kind: tuple(map(str, line.get(kind, ()))) for kind in LISTS}
                one = Concept(str(line["is"]), name, bool(group.get("findings")), bool(group.get("lay")), lists)
                listed += [(said, one) for said in (one.name, *lists["said"])]
                for said in lists["kin"]:
                    others = tuple(other for other in (one.name, *lists["kin"]) if other != said)
                    alike = lists | {"said": (), "kin": others}
                    listed.append((said, Concept(said, name, one.finding, one.lay, alike)))
                self._abbreviations([one.name, *lists["said"]])
                self._abbreviations(list(lists["kin"]))
        for said, one in listed:
            known = self.named.get(key(said))
            if known and one.lay and said == one.name == known.name:  # what both say
                lists = {kind: (*known.lists[kind], *one.lists[kind]) for kind in LISTS}
                lists["said"] = known.lists["said"]
                self.named[key(said)] = Concept(said, known.group, known.finding, lists=lists)
            elif known is None or (one.lay and known.name != said):
                self.named[key(said)] = one
        ones = {id(one): one for _, one in listed}.values()
        for one in ones:  # what is listed below a concept leads to it
            for said in one.lists["down"]:
                self.named.setdefault(key(said), Concept(said, one.group, one.finding, lists={"up": (one.name,)}))
        for one in ones:  # what is listed is known where a note says it
            for kind in ("signs", "leads", "up"):
                for said in one.lists[kind]:
                    if self._up.get(one.group):
                        self._shown[key(said)].add(one.group)
                    self.named.setdefault(key(said), Concept(said, finding=True))
        self.vocabulary = {word for name in self.named for word in name}

    def _abbreviations(self, names: list[str]) -> None:
        full = names[0] if names else ""
        for said in names:
            if said[-1].isupper() and sum(map(str.isupper, said)) > 1 and " " not in said:
                self.spelled[key(said)] = full
                self.abbreviated |= {key(said)} if len(said) < 4 else set()
            else:
                full = said

    def get(self, term: str) -> Concept | None:
        return self.named.get(key(term))

    def find(self, words: list[str]) -> Iterator[Mention]:
        """The concepts that words (of `split`) name, the longest name first; names within names are left out."""
        keys, at = [key(word) for word in words], 0
        while at < len(words):
            for behind in range(min(at + LONGEST, len(words)), at, -1):
                name = tuple(part for word in keys[at:behind] for part in word)
                found = self.named.get(name) if all(keys[at:behind]) else None  # a comma ends a name
                if found and not (name in self.abbreviated and not "".join(words[at:behind]).isupper()):
                    yield Mention(found, at, behind)
                    at = behind - 1
                    break
            at += 1

    def related(self, term: str, depth: int = 2) -> list[Related]:
        """What to search for beside a term, each once with its nearest relation, in a fixed order."""
        found: dict[Key, Related] = {}

        def add(said: str, relation: str, nearness: float) -> None:
            known = found.get(key(said))
            if known is None or known.nearness < nearness:
                found[key(said)] = Related(said, relation, nearness)

        def walk(name: str, nearness: float, left: int) -> None:
            concept = self.kind_of(name)
            if concept is None:
                return
            if concept.name != name:
                add(concept.name, "said" if key(name) in map(key, concept.lists.get("said", ())) else "up", nearness)
            for relation in LISTS if nearness == 1 else ("up", "signs", "leads", "with"):
                for said in concept.lists.get(relation, ()):
                    add(said, relation, nearness)
            for said in self._up.get(concept.group, []):
                add(said, "up", nearness * FAR)
            for said in self._care.get(concept.group, []):
                add(said, "care", nearness)
            for said in concept.lists.get("up", ()) if left else ():
                walk(said, nearness * FAR, left - 1)

        add(term, "is", 1.0)
        walk(term, 1.0, depth)
        return list(found.values())

    def specialty(self, terms: Iterable[str]) -> list[Related]:
        """What the specialty whose diseases name most of the terms has in common; [] where none does."""
        votes: dict[str, float] = {}
        for term in terms:
            concept, groups = self.get(term), self._shown.get(key(term), set())
            for group in {concept.group} if concept and self._up.get(concept.group) else groups:
                votes[group] = votes.get(group, 0.0) + 1 / max(1, len(groups))
        if not votes:
            return []
        most = max(sorted(votes), key=votes.__getitem__)
        return [
            *(Related(said, "up", FAR) for said in self._up[most]),
            *(Related(s, "care", FAR) for s in self._care[most]),
        ]

    def kind_of(self, term: str) -> Concept | None:
        """The concept of a name; a longer name is a kind of what it ends with: "cell sarcoma", "angiosarcoma"."""
        if known := self.get(term):
            return known
        words = key(term)
        for first in range(1, len(words)):
            if known := self.named.get(words[first:]):
                return known
        last = words[-1] if words else ""
        ends = (self.named.get((last[at:],)) for at in range(3, max(3, len(last) - 4)))
        return next(filter(None, ends), None)


def split(text: str) -> list[str]:
    """Words as they are written; hyphens and slashes part words, marks between words stand alone."""
    spaced = "".join(char if char.isalnum() or char in "'’+%.[]-" else f" {char} " for char in text)
    codes = (word if word.replace(".", "").isupper() else word.replace("-", " ") for word in spaced.split())  # PD-L1
    words = []
    for word in " ".join(codes).split():
        bare = word.rstrip(".")
        words += [part for part in (bare, "." if bare != word and len(word) > 2 else "") if part]
    return words


@lru_cache(maxsize=100_000)
def key(text: str) -> Key:
    """For comparing: American spelling, singular, no marks: "Pleural effusions" and "pleural effusion" are one."""
    return tuple(filter(None, map(_stem, plain(text).replace("-", " ").replace("/", " ").split())))


def _stem(word: str) -> str:
    word = word.removesuffix("'s").strip("'")
    if len(word) > 4:
        word = word.replace("aemi", "emi").replace("aem", "em").replace("oed", "ed").replace("oes", "es")
        word = word.replace("haem", "hem").replace("tumour", "tumor").replace("paed", "ped").replace("rrhoe", "rrhe")
        for ending, other in (("ies", "y"), ("sses", "ss"), ("ses", "sis"), ("xes", "x"), ("mata", "ma")):
            if word.endswith(ending):
                return word.removesuffix(ending) + other
        plural = word.endswith(("ias", "mas")) or not word.endswith(("ss", "us", "is", "as"))
        if word.endswith("s") and plural:
            return word[:-1]
    return word


@lru_cache(maxsize=1)
def word_lists() -> dict[str, set[str]]:
    """Negations, cues and endings by which a note is read; `generic_keys`: the generic words in one spelling."""
    lists = {name: set(map(str, words)) for name, words in data_yaml("prescreen", "words.yaml").items()}
    return lists | {"generic_keys": {part for word in lists["generic"] for part in key(word)}}


@lru_cache(maxsize=1)
def relations() -> dict[str, dict[str, Any]]:
    """By how a term belongs to the patient: `weight` and `expected`, what it promises, and `said`, in words."""
    return data_yaml("prescreen", "relations.yaml")


@lru_cache(maxsize=1)
def prompts() -> dict[str, Any]:
    """What models are told, and `tools`, which an orchestrator may call."""
    return data_yaml("prescreen", "prompts.yaml")


@lru_cache(maxsize=1)
def load_concepts() -> Concepts:
    """The graph, read once a process; abbreviations of `data/clinical` are names too.

    Raises:
        ConfigError: the file is missing or is no YAML.
    """
    concepts = Concepts(data_yaml("prescreen", "concepts.yaml")["groups"])
    for line in clinical("conditions")["conditions"]:
        if known := concepts.get(line["name"]):
            for said in line["said"]:
                concepts.named.setdefault(key(said), known)
                concepts.abbreviated |= {key(said)} if len(said) < 4 else set()
    return concepts
