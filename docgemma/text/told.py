"""What a message tells of a patient, "he had a GI bleed", "takes viagra", by clauses. No I/O."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import dropwhile, pairwise, takewhile

from docgemma.text.words import affirmed, clinical, fits, listed, names, plain

REACH = 6  # words behind the one that tells
LONGEST = 43  # weeks of pregnancy
YEAR = 4  # digits: "in 2010" is past


def told_clauses(text: str) -> Iterator[tuple[list[str], bool]]:
    """The words of each clause that neither denies nor asks, as "is he on warfarin" does; whether it is not certain,
    "asthma?", "?pregnant", "preg test neg"."""
    asking, persons = listed("telling", "asking"), listed("request_words", "persons")
    passive, taking = listed("telling", "passive", "supposed"), listed("telling", "using", "begun")
    marked = [""]
    for word in affirmed(text).split():
        begins = plain(word) in listed("telling", "subjects") | persons and plain(marked[-1]) not in asking | passive
        marked += [*(["|"] if begins else []), word, *(["|"] if word[-1] in ",.;:!?)-–" else [])]
    for clause in " ".join(marked).split("|"):
        words = [word for word in plain(clause).split() if word != "-"]
        turned = any(one in asking and other in persons for one, other in pairwise(words))
        stated = {*words[1:2]} & taking and clause.rstrip()[-1:] != "?"  # "is on", "was given"
        if words and not turned and (stated or words[0] not in asking - listed("telling", "having")):
            yield words, any(word == ";" or "?" in (word[0], word[-1]) for word in clause.split())


def told_behind(text: str, kind: str) -> list[str]:
    """The words behind those of a list of `data/clinical/telling.yaml`, but what is of somebody else or only feared."""
    found = []
    for words, _ in told_clauses(text):
        for at in (at for at, word in enumerate(words) if word in listed("telling", kind)):
            span = list(takewhile(lambda word: word != "from", words[at + 1 : at + 1 + REACH]))  # "from the internet"
            passive = {*words[max(at - 2, 0) : at - 1]} & listed("telling", "passive")  # "been put on"
            lead = [] if passive else words[max(at - 1, 0) : at]
            if kind == "begun" and {*span[:1]} & listed("telling", "begun_by"):
                span, lead = words[max(at - 2, 0) : at], span
            beside = {word.removesuffix("'s") for word in [*span, *lead]}
            past = any(one == "in" and other.isdecimal() and len(other) == YEAR for one, other in pairwise(span))
            if not beside & listed("telling", "unsaid", f"not_{kind}") and not (past and kind != "having"):
                found.append(" ".join(dropwhile(listed("telling", "linking").__contains__, span)))
    return found


def told_problems(text: str) -> list[str]:
    """The problems that a message tells of its patient: behind words of having, "has a GI bleed", or in a clause that
    tells nothing else, "65M HTN PVD - propranolol ok?"."""
    text, of_women = spelled(text), listed("telling", "of_women")
    told = [problem for span in told_behind(text, "having") for problem in _problems(span)[0][:1]]
    told = [problem for problem in told if not names(of_women, problem)]  # "her pregnancy test", "hx of preeclampsia"
    beside = listed("telling", "beside_problems", "subjects", "having") | listed("request_words", "persons")
    for words, asked in told_clauses(text):
        problems, left = _problems(" ".join(words))
        women = names(of_women, " ".join(problems))
        few = listed("telling", "weeks", "weeks_now") if women else beside
        behind = " ".join(words).partition(f"{problems[0]} ")[2].split()[:1] if problems and not women else []
        happened = left[:1] == behind and any(word.isdecimal() or word in listed("telling", "when") for word in behind)
        alone = all(word in few or word[0].isdigit() for word in left)
        told += problems if not asked and (alone or happened) else []  # "TIA 2 h ago ct clear"
    return list(dict.fromkeys(told))


def _problems(clause: str) -> tuple[list[str], list[str]]:
    """The problems of a clause in order of appearance, and the words that belong to none."""
    left, found = clause, list[tuple[int, str]]()
    for fragment in problem_words():
        while (at := fits(fragment, left)) >= 0:
            words = left[at + len(fragment) :].split(" ")
            more = [*takewhile(lambda word: word in listed("telling", "behind_problems"), words[1:])]
            more += words[len(more) + 1 :][: more[-1:] == ["stage"]]
            problem = " ".join([fragment + words[0], *more])
            left = f"{left[:at]}{';' * len(problem)}{left[at + len(problem) :]}"
            found.append((at, problem))
    return [problem for _, problem in sorted(found)], left.replace(";", " ").split()


@lru_cache(maxsize=1)
def problem_words() -> list[str]:
    """The beginnings of the words by which charts name problems, the longest first."""
    known = {fragment for entry in clinical("problems")["problems"] for fragment in entry["chart"]}
    return sorted(known, key=lambda fragment: (-len(fragment), fragment))


@lru_cache(maxsize=1)
def short_forms() -> dict[str, str]:
    """What is typed for a condition -> its name."""
    lists = [*clinical("conditions")["conditions"], *clinical("conditions")["told"]]
    return {plain(str(said)): entry["name"] for entry in lists for said in entry["said"]}


def spelled(text: str) -> str:
    """A text with what is typed for conditions in full words: "CKD4, on HD" is of "chronic kidney disease stage 4"."""
    known, capitals = short_forms(), listed("conditions", "only_in_capitals")
    words, told = list[str](), list[str]()
    for word in text.split():  # "HTN/T2DM/CKD3"
        words += word.replace("/", ", ").split() if all(plain(part) in known for part in word.split("/")) else [word]
    while words:
        for size in (3, 2, 1):
            some = words[:size]
            said = plain(" ".join(some))
            apart = any(word[-1] in ",.;:!?)" for word in some[:-1])
            if size == 1 or (len(some) == size and not apart and said in known):
                break
        name = known.get(said, "") if said not in capitals or some[0].strip("(?,.;:").isupper() else ""
        begins, ends = some[0][:1].strip("?("), "".join(char for char in some[-1][-2:] if char in ",.;:!?)")
        told.append(f"{'' if begins else some[0][0]}{name}{ends}" if name else " ".join(some))
        words = words[len(some) :]
    return " ".join(told)


def without(text: str, phrases: Iterable[str]) -> str:
    """The words of a text, a blank at either end, with a mark in the place of each of these phrases."""
    said = f" {plain(text)} "
    for phrase in phrases:
        said = said.replace(f" {phrase} ", " ; ")
    return said


def told_allergies(text: str) -> Iterator[tuple[str, str]]:
    """(word, substance and what stands beside it) of "had anaphylaxis to penicillin", "penicillin allergy"."""
    causes = listed("entries", "causing") | listed("telling", "under")
    for words, _ in told_clauses(text):
        for at, word in enumerate(words):
            if word in listed("telling", "allergic") and not {*words} & listed("telling", "unsaid"):
                behind = words[at + 1 : at + 2] and words[at + 1] in causes
                yield word, " ".join(words[at + 2 : at + 5] if behind else words[max(at - 2, 0) : at + 1])


def ended_pregnancy(text: str) -> str:
    """The words by which a message tells that a pregnancy is over, "delivered yesterday"; "" where none does."""
    said = without(text, clinical("telling")["ended_not"])
    return max((phrase for phrase in listed("telling", "ended") if f" {phrase} " in said), key=len, default="")


def told_weeks(text: str, pregnant: bool) -> int | None:
    """Weeks of pregnancy, "12 weeks pregnant", "is 37/40"; of somebody known to be `pregnant` "now 37 weeks" too."""
    for clause, _ in told_clauses(text):
        words = ["", *" ".join(clause).replace("/40", " fortieths").split(), "", ""]
        for lead, count, unit, behind in zip(words, words[1:], words[2:], [*words[3:], ""], strict=False):
            if lead in listed("telling", "weeks") and unit == "of":  # "week 12 of pregnancy"
                lead, unit = "", lead
            number = count.partition("+")[0]
            counted = number.isdecimal() and 0 < int(number) <= LONGEST and unit in listed("telling", "weeks")
            known = (pregnant or unit == "fortieths") and lead in listed("telling", "weeks_now")
            stated = {lead, behind} & listed("telling", "weeks_of")
            if counted and (stated or known) and behind not in listed("telling", "weeks_not"):
                return int(number)
    return None
