"""What a message takes over from the one before it: a correction's order, a follow-up's drugs and measures. Pure."""

from typing import Any, cast

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.notes import UNTYPED
from docgemma.reading.terms import measures_in, refers_back, said_in
from docgemma.rules.alarms import alarms_told
from docgemma.rules.corrections import ORDER_DETAILS, changed_order, corrected
from docgemma.rules.direct import definitions
from docgemma.rules.known import BRIEF, DOSES, ordered, replaced, unique
from docgemma.rules.patient_state import stated
from docgemma.rules.refusal import cannot_do
from docgemma.rules.searched import UNSAID, asks_evidence, searched_on
from docgemma.rules.typed import denies_allergies
from docgemma.rules.unheard import in_place
from docgemma.state import AgentState, OrderRef, Request
from docgemma.text.births import tells_somebody
from docgemma.text.said import clauses
from docgemma.text.words import listed, names, plain

AFTER_ALL = frozenset({"ok", "fix", "rx", "chat", "meds", "change"})  # asks that "prescribe it then" may be read as
HAVING = ("has a ", "has an ", "uses ", "also on ", "also takes ", "also uses ", "forgot ", "turns out ")


def carried(request: Request, last: Request | None, patient_open: bool) -> Request:
    """The request, completed from the last one."""
    somebody = bool(request["unclear"] or any(patient["said"] for patient in request["patients"]))
    asks = set(request["asks"])
    if request["meant"] in ("refused", "unsure") and names(listed("request_words", "wrong_person"), request["said"]):
        return replaced(request, patients=[], unclear=[], asks=["cancel"], meant="refused")
    if last and somebody and _ordered_alike(request, last):
        orders = [changed_order(order, request) for order in last["orders"]]  # "same for Goldstein but 100"
        several = [one["id"] for one in request["patients"]][1:] and [one["id"] for one in request["patients"]]
        return replaced(
            last, patients=request["patients"], unclear=request["unclear"], said=request["said"], orders=orders,
            owners={"rx": [several] * len(orders)} if several else {},
        )  # fmt: skip
    if last and _alters(request, last):
        return replaced(request, asks=["change", "may"], meant="asked", drugs=last["drugs"], measures=[])
    if "fix" in asks and last:
        if not _of_somebody_else(request, last):
            return corrected(request, last)
        request = replaced(request, asks=[ask for ask in request["asks"] if ask != "fix"])
        asks = set(request["asks"])
    if last and last["unclear"] and not (somebody or patient_open) and asks & {*TOPICS, *WRITES, "may"}:
        request, somebody = replaced(request, unclear=last["unclear"]), True  # whom the last one meant is still asked
    nobody_before = last is not None and not (last["patients"] or last["unclear"] or patient_open)
    onwards = last and somebody and (nobody_before or _goes_on(request, last))
    if last and onwards and last["asks"] and not asks - {"find", "chat"}:
        return replaced(last, patients=request["patients"], unclear=request["unclear"], said=request["said"])
    if last and not somebody and (noted := _noted_before(request, last)):
        return replaced(request, asks=["note"], meant="ordered", notes=noted)
    if last:
        request = replaced(request, **_taken_over(request, last, somebody, patient_open))
    about = somebody or patient_open
    if "gk" in asks and about and (bearing := _treatment(request)):
        checked = ["may"] if request["drugs"] else []  # "abx for the sinusitis then - cefalexin?"
        return replaced(request, **{**bearing, "asks": [*bearing["asks"], *checked]})
    if not about and _of_drug(request):
        of_her = {*plain(request["said"]).split()} & listed("request_words", "persons")  # the one who is described
        unnamed = ("rx",) if request["meant"] == "ordered" and request["orders"] else ()  # no entry without a name
        kept = [ask for ask in request["asks"] if ask in ("ddi", "change", *unnamed, *(() if of_her else ("may",)))]
        return replaced(request, asks=unique([*kept, "safe"]), meant="asked", orders=[], details={}, measures=[])
    asked = _asks(request, about)
    if asks_evidence(request) and request["drugs"] and not set(asked) & {"lit", *WRITES}:
        topics = [topic["name"] for topic in said_in(request["said"], "label_topics")]
        query = request["query"] or " ".join([*(drug["said"] for drug in request["drugs"]), *topics])
        request, asked = replaced(request, query=query), [*asked, "lit"]
    if about and (orders := in_place(request, _as_orders(request))):
        kept = [ask for ask in asked if ask not in ("may", "meds")]
        stays = ["change"] if len(request["drugs"]) > 1 else []  # the drug in whose place it is ordered
        return replaced(request, asks=unique([*kept, "rx", *stays]), meant="ordered", orders=orders, details={})
    if request["meant"] == "ordered" and _changes_order(request):
        return replaced(request, asks=unique([*asked, "change"]), meant="asked")
    return replaced(request, asks=asked)


def _noted_before(request: Request, last: Request) -> list[dict[str, str]]:
    """The message before as a note, where this one says no more than to write it down: "document that pls"."""
    words = set(plain(request["said"]).split())
    noting = words & listed("request_words", "noting_before") and not request["said"].rstrip().endswith("?")
    bare = words <= listed("request_words", "noting_plainly", "beside_noting", "fillers", "pointing", "opening", "back")
    told = not last["said"].rstrip().endswith("?") and set(last["asks"]) <= UNSAID
    whole = noting and bare and told and not request["notes"] and last["telling"]
    return [{"note_text": last["said"], "note_type": UNTYPED}] if whole else []


def ordered_after_all(request: Request, last: Request | None) -> Request | None:
    """The order of the one drug that the message before asked about: "ok, prescribe it", "go on then, 1 g qds". None
    where the message is something else. What comes of it is a card that waits for a person."""
    words, others = set(plain(request["said"]).split()), {patient["id"] for patient in request["patients"]}
    bare = not any(request[key] for key in ("drugs", "orders", "unclear", "allergies", "notes", "measures"))
    if not last or not bare or set(request["asks"]) - AFTER_ALL or request["meant"] == "refused":
        return None
    told = bool(listed("request_words", "ordering") & words) and not listed("request_words", "denying") & words
    told |= request["meant"] == "ordered" and bool(request["details"].get("dose"))  # "go on then, 1g qds"
    asking = request["said"].endswith("?")
    agreed = not asking and names(listed("request_words", "agreeing"), request["said"].split()[0])
    told |= agreed and {"dose", "frequency"} <= request["details"].keys()  # "ok 25 prn #6"
    considered = [*last["orders"], *_as_orders(last)]
    if not {"or", "vs", "versus"} & set(plain(last["said"]).split()):  # "omeprazole 20 od alongside the naproxen, ok?"
        considered = [order for order in considered if order["dose"]] or considered
    asked = {"may", "safe"} & set(last["asks"]) or last["meant"] in ("asked", "unsure")
    asked = asked or (request["meant"] == "ordered" and "rx" in request["asks"])  # "ok 2500 mg once", after 3500
    nobody = not (last["patients"] or last["unclear"]) and {"it", "that", "this"} & words  # "chart it for Schafer"
    same = others <= {patient["id"] for patient in last["patients"]} or bool(nobody)
    same &= all(plain(order["said"])[:4] in plain(last["said"]) for order in considered)  # "what would you give?"
    if not told or not asked or len({order["drug"] for order in considered}) != 1 or not same:
        return None
    said = request["details"]  # "pop that on" is not "at night", and "one" of what was 0.35 mg no other dose
    kept = {key: text for key, text in said.items() if plain(text) != "on" and (key != "dose" or text[:1].isdigit())}
    order = changed_order(considered[0], replaced(request, details=kept))
    last = replaced(last, asks=["rx"], meant="ordered", orders=[order], drugs=[], details={}, measures=[])
    return replaced(last, patients=request["patients"] or last["patients"], said=request["said"])


def both(first: Request, more: Request) -> Request:
    """Two requests of one patient as one. Where both are of entries and one is not plainly ordered, none is."""
    meant = {one["meant"] for one in (first, more) if set(one["asks"]) & set(WRITES)}
    fields = ("asks", "measures", "conditions", "trials", "telling", "drugs", "orders", "allergies", "notes")
    two = cast(Any, first), cast(Any, more)
    joined: dict[str, Any] = {field: unique([*two[0][field], *two[1][field]]) for field in fields}
    joined |= {"meant": "unsure" if len(meant) > 1 else meant.pop() if meant else first["meant"] or more["meant"]}
    joined |= {"details": first["details"] | more["details"], "said": f"{first['said']}. {more['said']}"}
    return replaced(first, **joined, query=first["query"] or more["query"])


def _as_orders(request: Request) -> list[OrderRef]:
    """The drugs of a question as orders, each with its details; the loose ones are of the drug before the dose."""
    said, loose = request["said"], request["details"]
    at = said.find(loose.get("dose", "") or " ")
    dosed = [drug for drug in request["drugs"] if len(request["drugs"]) == 1 or 0 <= said.find(drug["said"]) < at]
    orders = []
    for drug in request["drugs"]:
        details = drug.get("details") or (loose if drug in dosed[-1:] else {})
        told = {name: details.get(name, "") for name in ORDER_DETAILS}
        orders.append(cast(OrderRef, {"said": drug["said"], "drug": drug["name"], "how": drug["how"], **told}))
    return orders


def _ordered_alike(request: Request, last: Request) -> bool:
    """Whether the order before is given to another patient too: "same for garcia", "and for ms benali as well"."""
    told = " ".join([*(one["said"] for one in request["patients"]), *request["details"].values()])
    brief = len(request["said"].split()) - len(told.split()) <= BRIEF
    also = names(listed("request_words", "also"), request["said"]) and brief
    own = any(request[key] for key in ("drugs", "orders", "measures", "allergies", "notes"))
    return bool(also and not own and last["orders"]) and last["meant"] == "ordered" and "rx" in last["asks"]


def _of_somebody_else(request: Request, last: Request) -> bool:
    """Whether a detail is another patient's: "2 units for abc-123" gives the drug of the message before no dose."""
    if names(listed("request_words", "wrong_person"), request["said"]):  # "wrong pt. its tanaka, and tongue swelling"
        return False
    mine = {patient["id"] for patient in request["patients"]}
    theirs = {patient["id"] for patient in last["patients"]}
    return bool(mine and request["details"] and not mine & theirs and (theirs or last["unclear"]))


def _changes_order(request: Request) -> bool:
    """Whether the orders are of what is taken already: "increase lisinopril to 40 mg". Where another drug is stopped
    for it, the order is a new one; so is one that is to be increased later: "10 mg, increase to 20 after a week"."""
    asks, said = set(request["asks"]), request["said"]
    ordered = [order["said"] for order in request["orders"]]
    if "rx" not in asks or not ordered or {drug["said"] for drug in request["drugs"]} - set(ordered):
        return False
    before = said.partition(ordered[0])[0] if len(ordered) == 1 else ""
    return "change" in asks or bool(listed("request_words", "altering") & set(plain(before).split()))


def _taken_over(request: Request, last: Request, somebody: bool, patient_open: bool) -> dict[str, Any]:
    """What the message does not say again: the measures, drugs or conditions of the one before."""
    asks, new, said = set(request["asks"]), dict[str, Any](), request["said"]
    if searched := searched_on(request, last, somebody, patient_open):
        return searched
    same = listed("request_words", "same") & set(plain(said).split())
    if "allergy" in asks and last["allergies"] and same:  # "same for the elastoplast"
        given = [{field: text for field, text in one.items() if text} for one in request["allergies"]]
        new["allergies"] = [{**last["allergies"][-1], **one} for one in given]
    if somebody and not request["measures"] and asks & set(TOPICS) & set(last["asks"]):
        new["measures"] = last["measures"]
    brief = len(said.split()) <= BRIEF or not somebody  # "and for Souza?"
    his = {*plain(said).split()} & (listed("request_words", "persons") | listed("telling", "subjects"))
    told = his and "may" in last["asks"] and (alarms_told(said) or stated(said))  # "she's 7 wks late btw"
    leans = refers_back(said) or not _own_subject(request) or bool(told)
    leans &= not names(listed("request_words", "whole_list"), said)
    dosed = asks <= UNSAID and _asks_dose(said)  # "dose?"
    bare = not request["drugs"] and not request["orders"]
    adds = plain(said).startswith(tuple(f"{words} " for words in listed("request_words", "adding")))  # "and with X?"
    literature = "lit" in asks or said_in(said, "literature")
    trending = {*plain(said).split()} <= listed("request_words", "trending", "fillers", "questioning")
    trending &= bool(last["measures"]) and not somebody and bare and asks <= UNSAID | {*TOPICS}
    which = not (asks or somebody) and request["patients"] and set(last["asks"]) <= {*TOPICS}
    if trending or which:  # "trend?", "which one is higher?"
        new |= {"asks": last["asks"], "measures": last["measures"]}
    elif literature and bare and not somebody and not request.get("studies") and len(request["telling"]) < 2:
        drugs = last["drugs"] or ordered(last)
        telling = [word for word in request["telling"] if word not in listed("request_words", "of_articles")]
        own = request["query"] or " ".join(telling)  # "the iq study?"
        before = last["query"] if set(last["asks"]) & {"lit", "trial"} else ""
        query = " ".join(filter(None, [before, own, *(drug["name"] for drug in drugs)]))
        new |= {"drugs": drugs, "query": query}
    elif (dosed or asks & {"may", "ddi", "safe"}) and bare and brief and leans:
        new["drugs"] = last["drugs"] or ordered(last)
    elif asks & {"change", "rx"} and _of_dose(request) and bare and not somebody:
        new["drugs"] = (last["drugs"] or ordered(last))[-1:]  # "put him up to 1 g bd then"
    elif asks <= UNSAID | {"meds", "may"} and not (bare or somebody) and "may" in last["asks"] and names(HAVING, said):
        new |= {"drugs": [*(last["drugs"] or ordered(last)), *request["drugs"]], "asks": ["may", "ddi"]}
    elif "ddi" in asks and (adds or len(request["drugs"]) == 1) and not (somebody or patient_open):
        new["drugs"] = list({drug["name"]: drug for drug in [*last["drugs"], *request["drugs"]]}.values())
    if "trial" in asks and not (request["conditions"] or request["trials"]):
        new["conditions"] = last["conditions"]
    return new


def _of_drug(request: Request) -> bool:
    """Whether a message of nobody asks about a known drug, whatever else it was read as: "gent: which levels?",
    "egfr 28, januvia ?mg", "ropivacaine 0.2% max ml for 60 kg"."""
    asks, said, words = set(request["asks"]), request["said"], set(plain(request["said"]).split())
    known = any(drug["how"] in ("named", "short", "near") for drug in request["drugs"])
    somebody = tells_somebody(said)  # "41F on X": nobody of the record
    ordered = "rx" in asks and words & listed("request_words", "to_order" if somebody else "ordering")
    published = said_in(said, "literature") or said_in(said, "figures") or words & listed("request_words", "evidence")
    if not known or ordered or published or (words & listed("request_words", "persons") and not somebody):
        return False
    if somebody and not asks & {"note", "allergy", "lit", "trial", "cohort", "fix", "ok", "cancel"}:
        return True
    dosed = [plain(order["frequency"]) for order in request["orders"] if order["dose"][:1].isdigit()]
    asked = not dosed or (not {*dosed} - {"", "max"} and (_asks_dose(said) or words & listed("order_routes", "volume")))
    read_as = asks - ({"rx"} if asked else set())
    checks = {"safe", "may", "ddi"}
    beside = {"change"} if request["telling"] else set[str]()  # "stop prolia - spine?", not "stop sertraline"
    return bool(asks - checks) and read_as <= {*TOPICS, *UNSAID, *checks, *beside} - {"oos"}


def _asks_dose(said: str) -> bool:
    return any(topic["name"] in DOSES for topic in said_in(said, "label_topics"))


def _alters(request: Request, last: Request) -> bool:
    """Whether the one medicine of the chart that was asked about is to be changed: "up it to 54 please"."""
    first, second = [*plain(request["said"]).split(), "", ""][:2]
    drugs = len(last["drugs"]) == 1 and last["meant"] != "ordered" and not set(last["asks"]) - {*TOPICS, "may"}
    altering = first in listed("request_words", "altering", "altering_it") and second in listed("request_words", "it")
    return drugs and altering


def _goes_on(request: Request, last: Request) -> bool:
    """Whether a message asks of somebody else what was asked before, "and okafor's?"."""
    begins = {*plain(request["said"]).split()[:1]} & listed("request_words", "onwards")
    own = request["drugs"] or request["conditions"] or len(request["said"].split()) >= BRIEF
    return bool(begins and not own) and set(last["asks"]) <= {*TOPICS, "may"}


def _of_dose(request: Request) -> bool:
    """Whether a dose is said that is not ordered: "what if i bump him to 1000 bid"."""
    return request["meant"] != "ordered" and bool(request["details"].get("dose"))


def _own_subject(request: Request) -> bool:
    """Whether a message has a telling word of its own ("sepsis 6"), beside what labels are asked for ("max dose?")."""
    asked = {word for topic in said_in(request["said"], "label_topics") for word in plain(topic["name"]).split()}
    return bool(set(request["telling"]) - asked - listed("request_words", "fillers"))


def _treatment(request: Request) -> dict[str, Any]:
    """The parts of the open chart that bear on a question of treatment, which itself is answered by no source."""
    said = request["said"]
    disturbed = [entry["measure"] for entry in said_in(said, "disturbances")]
    measures = [*measures_in(said, sure=True), *disturbed]
    if definitions(said) or not (measures or said_in(said, "treating")):
        return {}
    parts = ["labs"] if measures else ["alg", "prob", "meds"]
    return {"asks": unique([*request["asks"], *parts]), "measures": unique([*request["measures"], *disturbed])}


def _asks(request: Request, about: bool) -> list[str]:
    """The asks, with what a patient, `about`, and a drug mean beside them."""
    asks, drugs = set(request["asks"]), request["drugs"]
    if asks & {"change", "rx"} and drugs and about and _of_dose(request):  # the new dose is checked all the same
        return unique([*request["asks"], "may"])
    words = plain(request["said"])
    if said_in(words, "figures") and not (about or asks & {"may", "ddi", *WRITES}):  # "SGLT2i in HFpEF, NNT?"
        return ["lit"]
    if not (about or drugs) and any(entry.get("cohort") for entry in said_in(request["said"], "undoable")):
        return ["cohort"]  # "give me all pen allergic on 4B"
    if "cohort" in asks and about and request["measures"]:  # "all with a K above 5, and what is Thornton's?"
        return unique([*request["asks"], "labs"])
    if said_in(words, "recruitment") and not asks & {"trial", *WRITES}:  # "HER2 adjuvant one, has it opened yet"
        return unique([*(ask for ask in request["asks"] if about or ask == "lit"), "trial"])
    if about and not drugs and asks <= {*TOPICS, *UNSAID, "lit"} and names(listed("request_words", "in_chart"), words):
        return unique([*(ask for ask in request["asks"] if ask in TOPICS), "notes", "labs"])  # "evidence of bleeding"
    published = said_in(words, "literature") and not asks & {*WRITES}
    if published and not about:  # "h pylori 1st line now, ACG?"
        return unique([*(ask for ask in request["asks"] if ask not in (*TOPICS, "may", "find", "gk")), "lit"])
    if published and "lit" not in asks:
        return unique([*request["asks"], "lit", *(["may"] if "img" in asks and drugs else [])])
    short = len(request["query"].split()) <= 2 and measures_in(request["query"], sure=True)
    if asks == {"lit"} and about and (short or (measures_in(words, sure=True) and not published)) and not drugs:
        return ["labs"]  # "any data on okafor's potassium", "evidence of infection in his bloods"
    if drugs and about and ("img" in asks or (asks <= UNSAID | {*TOPICS} and said_in(words, "explaining"))):
        return unique([*request["asks"], "may"])  # "versed not touching her, is she on something?"
    nkda = about and asks <= UNSAID and denies_allergies(request) and not drugs  # "is he nkda"
    unnamed = all(item["substance"] in ("", item["reaction"]) for item in request["allergies"])
    if nkda or ("allergy" in asks and unnamed):  # no entry without its substance: the list is meant
        return unique([*(ask for ask in request["asks"] if ask not in ("allergy", "find", "chat")), "alg"])
    apart = [part for part in clauses(request["said"]) if not any(drug["said"] in part for drug in drugs)]
    measured = about and any(measures_in(part, sure=True) for part in apart)
    if measured and asks & {"may", "demo", *(["meds"] if drugs else [])}:
        return unique([*request["asks"], "labs"])  # "thyroid alright?", "z-pak for her? got a qtc"
    if asks == {"oos"} and cannot_do(request):  # "cancel liams amox": no drug check; "order an inr": the last one
        return [*request["asks"], *(["labs"] if about and measures_in(request["said"], sure=True) else [])]
    told = said_in(request["said"], "label_topics")
    fits = said_in(request["said"], "dosing")  # "still the right dose?", "any renal adj?"
    beside = fits or any(topic.get("beside") or topic.get("timed") for topic in told)
    if "ddi" in asks and drugs and not about and beside and "safe" not in asks:  # "risk? and whats the max ozempic"
        return unique([*(ask for ask in request["asks"] if ask not in UNSAID), "safe"])
    if drugs and about and asks <= UNSAID | {"chart", "demo"}:
        return ["may"]  # a patient and a drug is an order check
    dosed = [topic for topic in told if topic.get("doses") and not topic.get("alone")]  # "her dose per kilo"
    if drugs and about and (fits or dosed) and asks <= UNSAID | {*TOPICS, "safe", *(["may"] if fits else [])}:
        return unique([*request["asks"], "may", *(["safe"] if fits else [])])
    return request["asks"]


def recorded_before(state: AgentState) -> bool:
    """Whether the turn before wrote an entry: a correction of it would have to change what stands in the record."""
    written = [item for item in state.get("tool_results") or [] if item["writes"]]
    return any(not item["error"] and item["result"].get("decision") != "rejected" for item in written)
