"""Direct answers of the edge model: manners, and curated, referenced definitions. Nothing here is generated.

A 135M model's medical knowledge is not to be trusted, so a question that no definition answers exactly gets an honest
line instead. The match is on the whole question: "what is the treatment of hypertension" is not answered with what
hypertension is.
"""

import json
import re
from functools import cache
from typing import NamedTuple

from docgemma.paths import data_file
from docgemma.prompts import Prepared

GREETING = "Hello. Ask me about a patient's record, a drug's safety or interactions, the literature or clinical trials."
THANKS = "You're welcome. Ask whenever you need something else."
GOODBYE = "Goodbye."
WELL = "All right. Ask whenever you need something else."
ABOUT = (
    "I am DocGemma, a clinical assistant that also runs offline. I can find patients and read their records, check "
    "drug safety and interactions, search literature and clinical trials, and prepare prescriptions, allergy entries "
    "and notes for your approval. I do not replace clinical judgement."
)
NEEDS_FULL_MODEL = (
    "I cannot answer this general medical question reliably with the small offline model; that needs the full model. "
    "I can look up drug safety and interactions, literature, clinical trials and patient records, and explain common "
    "clinical terms."
)

OPENERS = r"(?:(?:hi|hello|hey|hiya|yo|howdy|greetings|good (?:morning|afternoon|evening|day)|morning|evening)\b)"
MANNERS = (  # the whole message must be of this kind
    (re.compile(rf"{OPENERS}.{{0,60}}", re.I), GREETING),
    (re.compile(r".{0,40}\b(?:thanks?|thank you|thx|ty|cheers|ta|appreciated|grateful)\b.{0,60}", re.I), THANKS),
    (re.compile(r"(?:ok(?:ay)?,? )?(?:good)?bye\b.{0,30}|see you\b.{0,20}|talk later.{0,10}", re.I), GOODBYE),
    (re.compile(r"(?:ok|okay|got it|understood|great|perfect|fine|good|sure|brilliant|excellent|nice|all right|alright|"
                r"never ?mind|nothing else|(?:no(?:pe)?,? )?that'?s (?:all|it|everything))\b.{0,40}", re.I), WELL),
    (re.compile(r"(?:so |and )?(?:who|what) (?:are|r) (?:you|u)\b.{0,20}|who (?:made|built|created) you.{0,10}|"
                r"what (?:can|do) you (?:do|help).{0,30}|what (?:kinds?|sorts?) of (?:questions|things).{0,40}|"
                r"how do (?:i use (?:you|this)|you work).{0,20}|can you help(?: me)?.{0,10}|help|"
                r"are you (?:a|an) (?:doctor|ai|robot|human|bot|person).{0,10}", re.I), ABOUT),
)  # fmt: skip
SMALL_TALK = re.compile(
    r"how(?:'s| are| r| is) (?:it going|you|u|things|everything)|what can you|who (?:are|made|built) you|"
    r"what (?:kinds?|sorts?) of|how do (?:i use|you work)",
    re.IGNORECASE,
)
POLITE = re.compile(
    rf"^(?:{OPENERS}[,!. ]+|please |pls |ok(?:ay)?[,. ]+|so[, ]+|and |also[, ]+|quick(?:ly)?[,: ]+|just |"
    r"(?:can|could|would) you (?:please |briefly |quickly )?|i(?:'d| would) like to know |"
    r"i want to know |do you know |remind me |tell me |"
    r"in (?:simple|plain|lay|easy) (?:terms|words|english)[, ]+|in general[, ]+|"
    r"(?:no[,. ]+)?(?:i )?(?:don'?t|do not) need [\w ]{2,30}[,;:\-] *|no [\w ]{2,20} needed[,;:\- ]+|"
    r"before we [\w ]{2,30}[:,] *)+",
    re.IGNORECASE,
)
TAIL = re.compile(
    r"[\s,;:\-]*(?:\b(?:please|pls|plz|thanks|thx|exactly|actually|really|briefly|basically|again|"
    r"(?:just )?in general(?: terms)?|generally|in (?:a few|one|two|simple|plain|lay|layman'?s|easy|short) "
    r"(?:words|terms|sentences?|english)|roughly|"
    r"to (?:me|a student|a patient)|for me|in medicine|in brief|in short|in adults|mean|means|stand for|stands for|"
    r"measures?|includes?|does|do|defined|is for|is|are|conceptually|in the first place|"
    r"(?:just )?the (?:concept|definition|basics))|[.?!\"'”’])\s*$",
    re.IGNORECASE,
)
ASKS = re.compile(
    r"^(?:what(?:'s|’s|s)?(?: exactly| on earth| actually)?(?: is| are| r| does| do)?(?: (?:\w+ )?(?:meant|mean) by)?|"
    r"wat is|define|definition(?: of)?|(?:the )?meaning of|explain(?: to me)?(?: what)?|describe|tell me about|eli5|"
    r"(?:how (?:is|are|do you define|would you define)))\s+(?:the (?:term|word|abbreviation|definition of|meaning of|"
    r"concept of)\s+|meant by\s+)?",
    re.IGNORECASE,
)
BARE = re.compile(r"^[\w\s\-'’]{2,40}\?+$")  # "sepsis?"
DIFFERENCE = re.compile(
    r"^(?:what(?:'s|’s|s| is| are)?\s+|explain\s+|describe\s+)?(?:the\s+)?(?:diff(?:erences?)?|distinction)\s+"
    r"(?:between|btwn|b/w)\s+(.+?)\s+(?:and|vs\.?|versus|&)\s+(.+)$|"
    r"^how (?:does|do|is|are) (.+?) differ(?:ent)? from (.+)$|^how (?:do|does) (.+?) and (.+?) differ$",
    re.IGNORECASE,
)
WORKS = re.compile(
    r"^(?:(?:explain |describe )?how (?:does|do) (.+?) work|(?:explain |describe )how (.+?) works?|"
    r"(?:what(?:'s| is) |explain |describe )?(?:the )?(?:mechanism(?: of action)?|moa) of (.+)|"
    r"(.+?) (?:moa|mechanism of action))$",
    re.IGNORECASE,
)
DROPPED = re.compile(r"^(?:a|an|the|of)\s+", re.IGNORECASE)


class Definition(NamedTuple):
    """One curated entry. `reference` says where it can be checked; `says_how`: the text tells how it works."""

    term: str
    text: str
    reference: str
    says_how: bool = False


def direct_answer(question: str) -> Prepared:
    """Manners or a definition where the whole question asks for one; else what would be needed."""
    text = " ".join(question.split())
    if found := define(text):
        return _prepared(found)
    for pattern, reply in MANNERS:
        if pattern.fullmatch(text) and not _asks_more(text):
            return Prepared(reply)
    return Prepared(NEEDS_FULL_MODEL)


def define(question: str) -> list[Definition]:
    """The definitions that answer a question: one, or two for a difference; [] if the question asks anything else."""
    core = strip(question)
    if match := DIFFERENCE.match(core):
        left, right = (item for item in match.groups() if item)
        return _both(left, right)
    if (match := WORKS.match(core)) and (how := _works(next(item for item in match.groups() if item))):
        return [how]
    asked = ASKS.match(core)
    term = core[asked.end() :] if asked else core if BARE.match(question.strip()) else None
    found = lookup(term) if term else None
    return [found] if found else []


def strip(question: str) -> str:
    """The question without politeness around it."""
    text = POLITE.sub("", question.strip())
    while (shorter := TAIL.sub("", text)) != text:
        text = shorter
    return text.strip(" \"'“”‘’")


def lookup(term: str) -> Definition | None:
    """The entry of exactly this term or one of its other names."""
    key = _key(term)
    return index().get(key) or index().get(re.sub(r"(?<=\w)s$", "", key))


@cache
def index() -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for line in data_file("edge", "definitions.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        item = Definition(entry["term"], entry["text"], entry["reference"], entry.get("says_how", False))
        for name in (entry["term"], *entry["aliases"]):
            found[_key(name)] = item
    return found


def _works(term: str) -> Definition | None:
    """The entry that tells how something works: its own, or that of its mechanism."""
    found = lookup(f"mechanism of {term}") or lookup(term)
    return found if found and found.says_how else None


def _both(left: str, right: str) -> list[Definition]:
    """Two entries; "type 1 and 2 diabetes" lends its missing words to the other half."""
    first = lookup(left) or lookup(f"{left} {right.split()[-1]}")
    second = lookup(right) or lookup(f"{left.split()[0]} {right}")
    return list(dict.fromkeys((first, second))) if first and second else []


def _key(term: str) -> str:
    text = DROPPED.sub("", term.strip(" .?!,;:\"'“”‘’").casefold().replace("’", "'"))
    return " ".join(text.replace("-", " ").split())


def _asks_more(text: str) -> bool:
    """A greeting or thanks that goes on with a question deserves the honest line, not a greeting alone."""
    rest = POLITE.sub("", text)
    return "?" in rest and not SMALL_TALK.search(rest) and len(rest.split()) > 3


def _prepared(found: list[Definition]) -> Prepared:
    sources = [{"title": item.reference, "url": "", "id": item.term} for item in found]
    cited = [f"{item.text} (Source: {item.reference})" for item in found]
    return Prepared("\n\n".join(cited), sources)
