"""Refuse what no tool can do, and say which entries were not made: code says so, not a model. Pure."""

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.terms import said_in
from docgemma.rules import known
from docgemma.rules.claims import claims_entry
from docgemma.rules.grounding import without
from docgemma.rules.plan import planned
from docgemma.rules.unheard import halts, is_conditional, unheard_note, unheard_order
from docgemma.state import AgentState, Request, ToolResult
from docgemma.text.said import clauses
from docgemma.text.words import begun_with, listed, names, plain

UNCHANGED = (
    "I cannot remove, stop or change an entry of the record: that has to be done in the record system by a person. "
    "I can prepare a note that says so, or a new entry."
)
WEIGHED = (
    "Whether it is to be stopped or changed is a clinical judgement, which is not made here: what chart and labels "
    "hold is below. Nothing is changed; that has to be done in the record system by a person."
)
ABILITIES = (
    "I can look up patients' charts, drug labels and interactions, literature and trials, and prepare prescriptions, "
    "allergies and notes, which wait for your approval."
)
LIMITS = "I cannot call, book, page, cancel, refer, order tests, send or print, nor change what is recorded."
NOT_DONE = (
    f"{LIMITS} Nothing of it was done: do it yourself. If it is urgent, call a person now and follow the local "
    f"protocol. {ABILITIES}"
)
NO_COHORT = (
    "I read one chart at a time and cannot list patients by a medicine, a problem or a result: the record system's "
    "own search can. Name a patient, and I look there."
)
NOT_COVERED = (
    "How to treat this is not covered here: follow the local protocol. This is what the chart holds; drug labels, "
    "interactions, literature and trials can be looked up."
)
UNORDERED = "No entry was prepared, because it was not plainly ordered."
ASK_PLAINLY = f"{UNORDERED} To order it, say so, for example: prescribe {{drug}} with dose and frequency."
DEPENDS = (
    f"{UNORDERED} It depends on something, which is not decided here: look at what is found below, then order it, for "
    "example: prescribe {drug} with dose and frequency."
)
NO_NOTE = "No note was prepared: to have one, send it by itself, for example: save a note: followed by its text."
A_JUDGEMENT = (
    "Whether “{reaction}” with {substance} is an allergy or a side effect (intolerance) is a clinical judgement, which "
    "is not made here; a note to the prescriber can be prepared."
)
REFUSED = "No entry was prepared, as you said."
NOBODYS = "No entry was prepared: the patient it is for was not found."
FOR_WHOM = f"{REFUSED} Whom is it for? Give a name or an ID."
NOT_WANTED = "No entry was prepared: {drug} was read as not wanted. If it is, say: prescribe {drug}, with the dose."
NO_SUBSTANCE = (
    "No entry was prepared: an allergy entry names a substance, and that none is known cannot be entered here. "
    "I can prepare a note that says so."
)
NOTHING_RECORDED = "Nothing was written to the record."
NOT_PREPARED = (
    f"{NOTHING_RECORDED} The request was read as a general question, so no entry was prepared. Ask for the entry "
    "itself, with the patient's ID and, for a prescription, the drug, the dose and how often."
)


def refusals(request: Request) -> list[str]:
    """What is not done: a change of the record, an order that was taken back or not plainly given."""
    asks, plainly = set(request["asks"]), DEPENDS if is_conditional(request) else ASK_PLAINLY
    weighed = request["said"].rstrip().endswith("?") and request["meant"] != "ordered"  # "skip his lantus tonight?"
    lines = [WEIGHED if weighed else UNCHANGED] if "change" in asks else []
    lines += list(filter(None, [cannot_do(request)]))
    lines += [NO_COHORT] if "cohort" in asks else []
    lines += [NOBODYS] if [] in request["owners"].get("rx", []) else []
    none_known = names(listed("request_words", "no_allergies"), request["said"])  # "put nkda on her allergies"
    lines += [NO_SUBSTANCE] if none_known and asks == {"alg"} and request["meant"] == "ordered" else []
    treat = "gk" in asks and asks & set(TOPICS) and not asks & {"may", *WRITES}
    lines += [NOT_COVERED] if treat and said_in(request["said"], "treating") else []
    if request["meant"] in ("asked", "refused") and request["allergies"] and "allergy" in asks:
        lines += [A_JUDGEMENT.format(**item) for item in request["allergies"] if item["reaction"]]
    entry = asks & set(WRITES) or request["drugs"] or request["orders"] or request["allergies"] or request["notes"]
    if request["meant"] == "refused":
        lines += [refused(request)] if entry else []
    elif not request["meant"] and asks & set(TOPICS):
        given = [order for order in request["orders"] if order["dose"] and order["frequency"]]  # "x 50 od. her k?"
        lines += [ASK_PLAINLY.format(drug=given[0]["drug"])] if given else []
    elif request["meant"] == "asked" and "may" in asks:
        pass  # "can he have 15 mg iv ketorolac?": nobody expects an entry
    elif request["meant"] in ("asked", "unsure") and asks & set(WRITES) and "change" not in asks:
        lines.append(plainly.format(drug=request["orders"][0]["drug"] if request["orders"] else "the drug"))
    # orders, notes and stops that come to no entry, and that no line above answers
    entered = request["meant"] in ("ordered", "refused") and asks & set(WRITES)
    drug = "" if entered or any(line.startswith("No entry") for line in lines) else unheard_order(request)
    stops = halts(request, asked=False)
    held = any(drug in part for part in stops)  # "order a hold of the warfarin"
    lines += [plainly.format(drug=drug)] if drug and not held else []
    lines += [NO_NOTE] if unheard_note(request) else []
    return [*lines, *([UNCHANGED] if stops and "change" not in asks else [])]


def refused(request: Request) -> str:
    """What is said where no entry is wanted; an order whose dose was given is named, since it may have been misread."""
    given = [order["drug"] for order in request["orders"] if order["dose"]]
    another = names(listed("request_words", "wrong_person"), request["said"]) and not request["patients"]
    return NOT_WANTED.format(drug=given[0]) if given else FOR_WHOM if another else REFUSED


def cannot_do(request: Request) -> str:
    """What is said to a deed that only a person can do, "bleep the med reg"; "" where none is asked for."""
    noted = [note["note_text"] for note in request["notes"][:1]]
    told = request["said"].replace(noted[0], " ") if noted else request["said"]
    published = {"lit", "trial"} & {*request["asks"]}  # "HAS-BLED against CHA2DS2-VASc, RCT data?"
    if undoable := known.unique(entry["cannot"] for entry in said_in(told, "undoable") if not published):
        return f"I cannot {' or '.join(undoable)}: that was not done."
    asked = "oos" in request["asks"] and listed("request_words", "deeds") & set(plain(request["said"]).split())
    parts = [] if request["notes"] or request["orders"] else clauses(request["said"])
    begun = {begun_with(plain(part).split()) for part in parts}
    return NOT_DONE if asked or begun & listed("request_words", "errands") else ""  # "phone the lab for his crp"


def is_rejected(result: ToolResult) -> bool:
    """Whether a person rejected this entry."""
    return bool(result["result"].get("decision") == "rejected")


def any_rejected(state: AgentState) -> bool:
    return any(map(is_rejected, state.get("tool_results") or []))


def refused_answer(state: AgentState) -> str | None:
    """The whole answer of a turn in which nothing happened but rejections; None where there is more to say."""
    results = state.get("tool_results") or []
    if not results or not all(map(is_rejected, results)):
        return None
    return "\n".join([*known.unique(item["formatted_result"] for item in results), NOTHING_RECORDED])


def unprepared_answer(state: AgentState) -> str | None:
    """The whole answer where an entry was ordered and the question was taken for a general one; else None."""
    return NOT_PREPARED if any(step.ask in WRITES for step in planned(state)) else None


def without_entries(text: str, said_before: list[str]) -> tuple[str, list[str]]:
    """A text without the sentences that claim an entry which no earlier text confirms, and those sentences."""
    return without(text, lambda sentence: claims_entry(sentence, said_before))
