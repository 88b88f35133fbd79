"""Read a patient's note, or a chart, into facts. Names, dates, ids and addresses are taken out first.

No model is asked: what the note says is found by the concept graph, the drug dictionary and the shape of medical words,
so that the same note gives the same facts everywhere. What is denied, or is a relative's, is no fact.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from docgemma.errors import UsageError
from docgemma.knowledge.drug_names import load_drug_names
from docgemma.prescreen.concepts import key, load_concepts, split, word_lists
from docgemma.prescreen.records import Facts
from docgemma.text.characters import visible

if TYPE_CHECKING:
    from docgemma.ehr.base import Chart

MOST_CHARS = 20_000
SENTENCES_OF_CUE = 6  # words behind a cue that it reaches
FINDINGS = 30
GONE = "[removed]"
# e-mail and web addresses, dates, numbers of five and more digits, phone numbers, codes of letters and digits
IDENTIFIERS = re.compile(
    r"\[\*\*.*?\*\*\]|\S+@\S+|https?://\S+|\bwww\.\S+|\b\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4}\b|\b[A-Z]{0,4}-?\d{6,}\w*|"
    r"\+?\(?\d{2,4}\)?[ -]\d{3,4}[ -]\d{2,4}(?:[ -]\d{2,4})?|\b\d+ [A-Z]\w+ (?:Street|St|Road|Rd|Avenue|Ave|Lane|"
    r"Ln|Drive|Dr|Blvd|Way|Court)\b\.?|\b(?:\d{1,2}(?:st|nd|rd|th)? )?(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|"
    r"Nov|Dec)[a-z]*\.? (?:\d{1,2},? )?(?:19|20)\d\d\b|"
    r"(?i:\b(?:mrn|ssn|id|nhs|dob|account)\b(?: ?(?:no|number))?[:#. ]{1,3})\S*\d\S*"
)


@dataclass
class Term:
    """One thing that the note says of the patient. `main`: a cue of the main diagnosis stands before it."""

    text: str
    at: int  # sentence
    known: bool  # a concept, or a drug
    finding: bool
    main: bool = False
    past: bool = False
    denied: bool = False


def read_note(note: str, names: Iterable[str] = ()) -> Facts:
    """The facts of a note.

    Args:
        names: the patient's names and ids where they are known, to be taken out wherever they stand.

    Raises:
        UsageError: the note is empty, or longer than 20,000 characters.
    """
    text = without_identifiers(visible(note).strip(), names)
    if not text or len(text) > MOST_CHARS:
        raise UsageError(
            f"The note has {len(text):,} characters.",
            hint=f"Give what is known of the patient, at most {MOST_CHARS:,}.",
        )
    sentences = _sentences(text)
    terms = [term for number, words in enumerate(sentences) for term in _terms(words, number)]
    terms = [term for term in terms if term.text not in load_drug_names()]
    there = _distinct([term for term in terms if not term.denied])
    ranked = sorted(
        (term for term in there if not term.finding),
        key=lambda term: term.at - 3 * term.main + 3 * term.past + (not term.known) + 5 * _common(term.text),
    )
    main = ranked[:1] or [term for term in there if term.known][:1] or there[:1]
    others = [term for term in ranked if term not in main]
    also_main = [term for term in others if term.main and not term.past and not _common(term.text)]
    age, sex = _age(split(text)), _sex(split(text))
    drugs = load_drug_names().find(text)
    denied = {key(term.text) for term in terms if term.denied}
    generics = [load_drug_names().generic(one.name) or one.name for one in drugs]
    medicines = dict.fromkeys(name.partition(" (")[0] for name in generics)
    return Facts(
        age=age, sex=sex, diagnoses=[term.text for term in [*main, *also_main][:3]],
        stage=_after(text, ("stage", "grade")), histology="", biomarkers=_biomarkers(sentences),
        prior_lines=[name for name in medicines if key(name) not in denied][:12],
        comorbidities=[term.text for term in others if term not in also_main][:20],
        findings=[term.text for term in there if term.finding and term not in main][:FINDINGS], note=text,
    )  # fmt: skip


def read_chart(chart: "Chart") -> Facts:
    """The facts of a patient of the record store: problems in the chart's order, active ones before resolved ones."""
    from docgemma.ehr.summary import summarize

    told: dict[str, Any] = summarize(chart)
    problems = sorted(told["problems"], key=lambda item: bool(item.get("resolved")))
    patient = told["patient"]
    born, today = patient["birth_date"], date.today().isoformat()
    years = f"{int(today[:4]) - int(born[:4]) - (today[5 : len(born)] < born[5:])}-year-old " if born else ""
    lines = [f"{years}{patient['sex']}."]
    lines += ["Diagnosis: " + "; ".join(item["name"] for item in problems) + "."]
    lines += ["Medicines: " + "; ".join(item["name"] for item in told["medications"]) + "."]
    lines += [item["text"] for item in told["notes"]]
    return read_note(
        "\n".join(lines)[:MOST_CHARS], [*patient["name"].split(), patient["id"], *chart.patient.identifiers]
    )


def without_identifiers(text: str, names: Iterable[str] = ()) -> str:
    """The text without e-mail addresses, dates, long numbers, codes, street addresses, and words that may be names.

    A capital makes a name where no dictionary, concept or ending of a medical word knows the word. Age and sex stay.
    """
    text = IDENTIFIERS.sub(GONE, text)
    given = {part for name in names for part in key(name) if len(part) > 1}
    lists, out, after_title = word_lists(), [], False
    for line in text.splitlines():
        pieces = line.split(" ")
        for at, piece in enumerate(pieces):
            bare = piece.strip(".,;:()[]\"'?!“”").removesuffix("'s").removesuffix("’s")
            word, following = bare.casefold(), [other.strip(".,;:()").casefold() for other in pieces[at + 1 : at + 3]]
            capital = bare[:1].isupper() and not bare.isupper()
            hidden = capital and word not in lists["capital"] and not (
                _medical(bare) or bare in load_drug_names() or set(following) & lists["eponymic"]
            )  # fmt: skip
            initial = len(bare) == 1 and piece.endswith(".") and bare.isupper()
            shouted = after_title and bare.isalpha() and bare.isupper() and len(bare) > 2 and not _medical(bare)
            if (
                set(key(bare)) & given
                or shouted
                or (hidden and any(map(str.isalpha, bare)))
                or (initial and GONE in pieces[at - 1 : at])
            ):
                pieces[at] = piece.replace(bare, GONE, 1) if bare else piece
            after_title = word in lists["titles"] or (after_title and GONE in pieces[at])
        out.append(" ".join(pieces))
    return "\n".join(out)


def _medical(word: str) -> bool:
    """Whether a word belongs to a concept's name or ends as a disease or a finding does."""
    stems = key(word)
    return bool(stems) and all(
        part in load_concepts().vocabulary or part in word_lists()["heads"] or _ends(part) for part in stems
    )


def _common(text: str) -> bool:
    """Whether it is a problem that many patients have beside the one that they are seen for."""
    concept = load_concepts().get(text)
    return concept is not None and concept.name in word_lists()["common"]


def _ends(word: str) -> bool:
    return len(word) > 4 and word.endswith(tuple(word_lists()["endings"]))


def _sentences(text: str) -> list[list[str]]:
    """The words of each sentence; a line ends one."""
    found: list[list[str]] = []
    for line in text.splitlines():
        words: list[str] = []
        for word in split(line):
            if word == ")" and words[-2:-1] == ["("] and words[-1].isupper():
                words = words[:-2]  # "heavy chain (HC) disease"
                continue
            words.append(word)
            if word in (".", ";"):
                found, words = [*found, words], []
        found += [words] if words else []
    return found


def _terms(words: Sequence[str], number: int) -> list[Term]:
    """What a sentence names: concepts, and phrases of words that look medical."""
    lists, lowered = word_lists(), [word.casefold() for word in words]
    mentions = {mention.first: mention for mention in load_concepts().find(list(words))}
    denied, family = _scope(lowered, "negations"), _scope(lowered, "family")
    past, main = _cue(lowered, "past"), _cue(lowered, "main")
    found, at = [], 0
    while at < len(words):
        if mention := mentions.get(at):
            concept, behind = mention.concept, mention.behind
            text, finding = " ".join(words[at:behind]), concept.finding
            text = concept.name if concept.lay else load_concepts().spelled.get(key(text), text)
        else:
            behind = at
            while behind < min(at + 5, len(words)) and behind not in mentions and words[behind].isalpha():
                if len(words[behind]) < 2 or lowered[behind] in lists["stops"] or words[behind] == GONE.strip("[]"):
                    break
                behind += 1
            text = " ".join(words[at:behind])
            last = key(words[behind - 1])[-1:] if behind > at and behind not in mentions else ()
            generic = set(key(text)) <= lists["generic_keys"] | {"tumor", "cancer"}
            if not last or generic or not (_ends(last[0]) or last[0] in lists["heads"]):
                at = max(behind, at + 1)
                continue
            finding = not _ends(last[0]) and last[0] not in ("disease", "syndrome", "cancer", "disorder", "tumor")
        gone = denied[at] or family[at] or _denied_behind(lowered[behind:])
        found.append(Term(text, number, mention is not None, finding, main[at], past[at], gone))
        at = behind
    return found


def _scope(words: Sequence[str], kind: str) -> list[bool]:
    """Which words stand behind a negation (up to a word that ends it) or behind a relative."""
    inside, found = False, []
    for at, word in enumerate(words):
        if any(" ".join(words[at : at + size]) in word_lists()[kind] for size in (1, 2, 3)):
            inside = True
        elif kind == "negations" and (word in word_lists()["ends"] or word in (".", ":")):
            inside = False
        found.append(inside)
    return found


def _cue(words: Sequence[str], kind: str) -> list[bool]:
    """Which words stand shortly behind a cue."""
    cues, reach, found = word_lists()[kind], 0, []
    for at in range(len(words)):
        hit = any(" ".join(words[at : at + size]) in cues for size in (1, 2, 3, 4))
        long = kind == "past"  # a heading or "history of" holds for the whole sentence
        reach = (len(words) if long else SENTENCES_OF_CUE) if hit else reach - 1
        found.append(reach > 0)
    return found


def _denied_behind(words: Sequence[str]) -> bool:
    """Whether "... was ruled out" or "negative" follows, directly or behind a word."""
    return any(" ".join(words[at : at + size]) in word_lists()["behind"] for at in (0, 1) for size in (1, 2, 3))


def _distinct(terms: Sequence[Term]) -> list[Term]:
    """Each term once: the first, with the cues of all."""
    found: dict[tuple[str, ...], Term] = {}
    for term in terms:
        concept = load_concepts().get(term.text)
        same = found.setdefault(key(concept.name if concept else term.text), term)
        same.main, same.past = same.main or term.main, same.past and term.past
    return list(found.values())


def _after(text: str, cues: tuple[str, ...]) -> str:
    """What follows "stage": "IV", "3b"."""
    words = split(text)
    for cue, value in pairwise(words):
        if cue.casefold() in cues and (value[0].isdigit() or set(value[:3].upper()) <= set("IVXABC")):
            return f"{cue.casefold()} {value}"
    return ""


def _biomarkers(sentences: Sequence[Sequence[str]]) -> list[str]:
    """Names like genes and antigens that the note gives as present: capitals with digits, "EGFR", "PD-L1"."""
    found = []
    for words in sentences:
        denied = _scope([word.casefold() for word in words], "negations")
        for at, word in enumerate(words):
            rest = [other.casefold() for other in words[at + 1 : at + 5]]
            shaped = 2 < len(word) < 9 and word[:2].isupper() and word.isalnum() and word.isupper()
            concept = load_concepts().get(word)
            told = set(rest) & word_lists()["markers"]
            if shaped and concept is None and not denied[at] and told and not _denied_behind(rest):
                found.append(word)
    return list(dict.fromkeys(found))[:8]


def _age(words: Sequence[str]) -> int | None:
    """The first number before "year old", "yo", "y/o", or the one that stands behind "aged"; months are 0 years."""
    for at, word in enumerate(words):
        rest = "".join(words[at + 1 : at + 4]).casefold().replace("-", "").replace("/", "")
        digits = "".join(char for char in word if char.isdigit())
        glued = word[len(digits) :].casefold() in ("yo", "y", "m", "f", "yom", "yof")
        named = rest.startswith(("yearold", "yearsold", "yo", "yr", "years", "yearsof")) or (
            at and words[at - 1].casefold() in ("aged", "age")
        )
        if digits and word.startswith(digits) and int(digits) < 120 and (named if word == digits else glued):
            return int(digits)
        if word == digits and word and rest.startswith(("month", "m o", "mo", "weekold", "dayold")):
            return int(digits) // 12 if "mo" in rest else 0
        if word == digits and word and rest[:1] in ("m", "f") and words[at + 1] in ("M", "F"):
            return int(digits)
    return None


def _sex(words: Sequence[str]) -> Literal["", "MALE", "FEMALE"]:
    """By the first word that says it, pronouns after nouns."""
    lowered = [word.casefold() for word in words]
    for kind in ("words", "pronouns"):
        for at, word in enumerate(lowered):
            after = at > 0 and (words[at - 1].isdigit() or lowered[at - 1] in ("yo", "o", "old", "y"))
            letter = words[at][-1:] if words[at][:-1].isdigit() else words[at] if after else ""
            ending = letter if kind == "words" else ""
            if ending == "M" or word in word_lists()[f"male_{kind}"]:
                return "MALE"
            if ending == "F" or word in word_lists()[f"female_{kind}"]:
                return "FEMALE"
    return ""
