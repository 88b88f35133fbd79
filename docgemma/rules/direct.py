"""Answer what needs no look-up: manners, a curated definition, or one honest line. Nothing here is generated."""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from docgemma.paths import data_file
from docgemma.rules.answer import NO_IMAGE, NOTHING_WAITS, OUT_OF_SCOPE
from docgemma.rules.refusal import ABILITIES, LIMITS, NO_COHORT, UNCHANGED, cannot_do, refused
from docgemma.rules.unanswered import BEYOND, UNSEEN, WORDS
from docgemma.state import Request
from docgemma.text.births import tells_somebody
from docgemma.text.words import listed, phrases_in, plain

GREETING = "Hello. Ask me about a patient's record, a drug's safety or interactions, the literature or clinical trials."
THANKS = "You're welcome. Ask whenever you need something else."
LISTENS = (
    "I hear you. I found no question in that: what do you need, and about whom? Name a patient (a name, a birth date "
    "or an ID), a drug, or what to search for."
)
NEEDS_FULL_MODEL = (
    "I cannot answer this general medical question reliably with the small offline model; that needs the full model. "
    "I can look up drug safety and interactions, literature, clinical trials and patient records, and explain common "
    "clinical terms. In an emergency, call a person now and follow the local protocol."
)
WHO = "Which patient? Give a name, a birth date or an ID, and what you want to know."
NO_DIAGNOSIS = (
    "I make no diagnosis from what you describe, and no patient or drug is named in it. If it may be urgent, get help "
    "now: call the emergency team or services, and follow the local protocol. To look something up, name a patient (a "
    "name, a birth date or an ID), a drug, or what to search for."
)
GREETS = frozenset("hi hello hey hiya morning afternoon evening howdy greetings".split())
MOST = 2  # definitions in one answer


@dataclass(frozen=True)
class Reply:
    """`settled`: a language model is not asked. `definition`: the curated text alone, "" where there is none."""

    text: str
    settled: bool = False
    refused: bool = False
    definition: str = ""
    sources: list[dict[str, Any]] = field(default_factory=list)
    unanswered: list[dict[str, str]] = field(default_factory=list)


def direct_reply(request: Request, question: str) -> Reply:
    """What code says to a request that needs no tool."""
    asks = set(request["asks"])
    if "change" in asks:
        return Reply(UNCHANGED, settled=True, refused=True)
    if "cohort" in asks:
        return Reply(NO_COHORT, settled=True, unanswered=[{"ask": WORDS["cohort"], "reason": "one chart at a time"}])
    if request["meant"] == "refused":
        return Reply(refused(request), settled=True)
    if asks & {"ok", "cancel"}:
        return Reply(NOTHING_WAITS, settled=True)
    if "img" in asks:
        return Reply(NO_IMAGE, settled=True, unanswered=[{"ask": WORDS["img"], "reason": UNSEEN}])
    said = plain(question)
    able = phrases_in(said, [(phrase, 1) for phrase in listed("request_words", "abilities")])[0]
    if able and asks <= {"chat", "gk", "oos"}:
        return Reply(f"{ABILITIES} {LIMITS}", settled=True)
    if found := definitions(question):
        text = "\n\n".join(f"{item['text']} (Source: {item['reference']})" for item in found)
        sources = [{"title": item["reference"], "url": "", "id": item["term"]} for item in found]
        return Reply(text, settled=True, definition=text, sources=sources)
    if asks == {"oos"}:
        text = cannot_do(request) or OUT_OF_SCOPE
        return Reply(text, settled=True, unanswered=[{"ask": WORDS["oos"], "reason": BEYOND}])
    if tells_somebody(question) and not asks - {"chat", "gk", "fix", "labs", "vit", "prob"}:  # "70F, arm weak"
        return Reply(NO_DIAGNOSIS, settled=True)
    thanked = bool(listed("request_words", "thanks") & set(said.split()))
    if asks == {"chat"} or (thanked and not asks):
        return Reply(THANKS if thanked else GREETING if set(said.split()) & GREETS else LISTENS)
    if asks & {"find", "may"} or not asks - {"fix"}:
        return Reply(WHO, settled=bool(asks & {"find", "may"}))
    return Reply(NEEDS_FULL_MODEL, unanswered=[{"ask": WORDS["gk"], "reason": "not in the offline definitions"}])


def definitions(question: str) -> list[dict[str, str]]:
    """The curated entries that answer a question whole: besides their terms it has only words that ask. At most two."""
    found, rest = phrases_in(_folded(question), _terms())
    asking = _asking() | {"s", "r", "u"}
    distinct = [entry for number, entry in enumerate(found) if entry not in found[:number]]
    return distinct if len(distinct) <= MOST and set(rest.split()) <= asking else []


def _asking() -> frozenset[str]:
    """Words around a term that ask for nothing but its meaning."""
    return listed("request_words", "stop") | listed("request_words", "definition")


@cache
def _terms() -> list[tuple[str, dict[str, str]]]:
    """Every term and alias, and its plural, the longest first -> its entry: `text`, and `reference`, its source."""
    found: dict[str, dict[str, str]] = {}
    for line in data_file("edge", "definitions.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        for name in map(_folded, (entry["term"], *entry["aliases"])):
            if not set(name.split()) <= _asking():
                found |= {name: entry, f"{name}s": entry}
    return sorted(found.items(), key=lambda item: -len(item[0]))


def _folded(text: str) -> str:
    return plain(text).replace("'", " ").replace("-", " ")
