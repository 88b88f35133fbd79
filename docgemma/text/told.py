"""What a message tells of a patient, "he had a GI bleed", "takes viagra", by clauses. No I/O."""

from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile

from docgemma.text.words import affirmed, clinical, fits, listed, plain

REACH = 6  # words behind the one that tells
LONGEST = 43  # weeks of pregnancy
YEAR = 4  # digits: "in 2010" is past


def told_clauses(text: str) -> Iterator[list[str]]:
    """The words of each clause that neither denies nor asks, as "is he on warfarin" does."""
    asking, persons = listed("telling", "asking"), listed("request_words", "persons")
    passive, taking = listed("telling", "passive"), listed("telling", "using", "begun")
    marked = [""]
    for word in affirmed(text).split():
        begins = plain(word) in listed("telling", "subjects") | persons and plain(marked[-1]) not in asking | passive
        marked += [*(["|"] if begins else []), word, *(["|"] if word[-1] in ",.;:!?)" else [])]
    for clause in " ".join(marked).split("|"):
        words = plain(clause).split()
        turned = any(one in asking and other in persons for one, other in pairwise(words))
        stated = {*words[1:2]} & taking and clause.rstrip()[-1:] != "?"  # "is on", "was given"
        if words and not turned and (stated or words[0] not in asking - listed("telling", "having")):
            yield words


def told_behind(text: str, kind: str) -> list[str]:
    """The words behind those of a list of `data/clinical/telling.yaml`, but what is of somebody else or only feared."""
    found = []
    for words in told_clauses(text):
        for at in (at for at, word in enumerate(words) if word in listed("telling", kind)):
            span = list(takewhile(lambda word: word != "from", words[at + 1 : at + 1 + REACH]))  # "from the internet"
            passive = {*words[max(at - 2, 0) : at - 1]} & listed("telling", "passive")  # "been put on"
            lead = [] if passive else words[max(at - 1, 0) : at]
            if kind == "begun" and {*span[:1]} & listed("telling", "begun_by"):
                span, lead = words[max(at - 2, 0) : at], span
            beside = {word.removesuffix("'s") for word in [*span, *lead]}
            past = any(one == "in" and other.isdecimal() and len(other) == YEAR for one, other in pairwise(span))
            if not beside & listed("telling", "unsaid", f"not_{kind}") and not (past and kind != "having"):
                found.append(" ".join(span))
    return found


def begins_with_problem(text: str) -> bool:
    """Whether a text begins with a problem, a pregnancy or breast feeding: "breastfeeding twins"."""
    return any(fits(fragment, plain(text)) == 0 for fragment in [*problem_words(), *listed("telling", "of_women")])


def problem_words() -> list[str]:
    """The beginnings of the words by which charts name problems."""
    return [fragment for entry in clinical("problems")["problems"] for fragment in entry["chart"]]


def without(text: str, phrases: Iterable[str]) -> str:
    """The words of a text, a blank at either end, with a mark in the place of each of these phrases."""
    said = f" {plain(text)} "
    for phrase in phrases:
        said = said.replace(f" {phrase} ", " ; ")
    return said


def happened(clause: str) -> bool:
    """Whether a clause begins with a problem and says when right behind it: "TIA 2 h ago", no "stroke clinic"."""
    problem, when = [*plain(clause).split()[:2], "", ""][:2]
    return problem in problem_words() and (when.isdecimal() or when in listed("telling", "when"))


def told_allergies(text: str) -> Iterator[tuple[str, str]]:
    """(word, substance and what stands beside it) of "had anaphylaxis to penicillin", "penicillin allergy"."""
    causes = listed("entries", "causing") | listed("telling", "under")
    for words in told_clauses(text):
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
    for clause in told_clauses(text):
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
