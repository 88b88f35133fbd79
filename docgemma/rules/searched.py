"""Published work that a message asks for: what it takes over from the search before it. Pure."""

from typing import Any

from docgemma.reading.labels import WRITES
from docgemma.reading.terms import refers_back, said_in
from docgemma.rules.known import BRIEF, unique
from docgemma.rules.unmatched import telling_words
from docgemma.state import Request
from docgemma.text.said import asked_parts
from docgemma.text.words import listed, plain

OF_DRUG = frozenset({"side effects", "overdose", "interactions", "indication", "mechanism and class"})  # label topics
UNSAID = frozenset({"chat", "gk", "oos", "find"})  # asks by which nothing of a chart was understood


def searched_on(request: Request, last: Request, somebody: bool, patient_open: bool) -> dict[str, Any]:
    """What a message after a search goes on with: the same articles where it has no subject of its own ("any newer?"),
    else its own subject, and the drug where it names none ("and in HFrEF?")."""
    asks, said, before = set(request["asks"]), request["said"], set(last["asks"]) & {"lit", "trial"}
    words, drugs = {*plain(said).split()}, request["drugs"]
    if request.get("studies") or request["orders"] or request["trials"] or asks & {*WRITES, "fix"}:
        return {}
    told = [request["query"], *request["telling"], *request["measures"], *request["conditions"]]
    subject = {*telling_words(" ".join(told))} - listed("request_words", "of_articles")
    asked = asks & {"lit", "trial"} or (before and not somebody and words & listed("request_words", "of_articles"))
    alone = not subject and (not drugs or (before and refers_back(said) and not request["query"]))
    if asked and alone and asks <= UNSAID | {"lit", "trial", "img", "may"} and (before or last["drugs"]):
        kept = unique([*(ask for ask in request["asks"] if ask not in UNSAID | {"img"}), "lit"])
        of_somebody = last["patients"] or last["unclear"] or patient_open  # no name leaves for an outside service
        subject_before = " ".join(drug["name"] for drug in last["drugs"]) if of_somebody else last["said"]
        return {"asks": kept, "query": last["query"] or subject_before, "drugs": drugs or last["drugs"]}
    after = before and set(last["asks"]) <= {"lit", "trial"} and refers_back(said) and len(words) <= BRIEF + 2
    if not (after and (subject or drugs) and asks <= UNSAID | {"safe", "lit"}) or somebody or _of_label(said):
        return {}
    query = " ".join([said, *(drug["said"] for drug in last["drugs"] if not drugs)])
    return {"asks": unique([*(asks - UNSAID if drugs else []), "lit"]), "query": query}


def asks_evidence(request: Request) -> bool:
    """Whether evidence is asked for beside something else, as a clause of its own: "..., ok? evidence?"."""
    parts = [set(plain(part).split()) - {"any"} for part, _ in asked_parts(request["said"])]
    return len(parts) > 1 and any(part and part <= listed("request_words", "evidence") for part in parts)


def _of_label(said: str) -> bool:
    """Whether a part of a drug's label is asked for: its dose or side effects; not a condition."""
    topics = said_in(said, "label_topics")
    return any(topic.get("beside") or topic.get("timed") or topic["name"] in OF_DRUG for topic in topics)
