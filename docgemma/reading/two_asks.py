"""A message that orders an entry and asks something else beside it: each of its two parts is read by itself."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from docgemma.reading.labels import TOPICS, WRITES
from docgemma.reading.meant import PLAINLY, SURE
from docgemma.reading.reader import Reader
from docgemma.reading.terms import measures_in
from docgemma.state import OrderRef, Request
from docgemma.text.said import asks_plainly, demands, has_quotation, is_brief, two_parts
from docgemma.text.words import listed, plain

LOOKED = (*TOPICS, "safe", "ddi", "may", "lit", "trial", "img")
ALONE = ("fix", "ok", "cancel", "change", "oos", "cohort", *WRITES)  # asks of no question beside an entry
JOINED = ("measures", "drugs", "conditions", "telling")
ENTRIES = ("orders", "allergies", "notes")


def entry_and_question(
    message: str, whole: Request, reader: Reader, read: Callable[[str], Request], opened: bool
) -> Request | None:
    """The request with the entry of one part, plainly ordered, and what the other part asks: "X 5 mg od for Y. Her K?".

    None where the message is one: "X 5 mg od, ok?", "if her K is low, X"; where the question is of the order; and where
    it is not sure whose it is. A note may hold what reads like a question. `opened`: whether a patient is open."""
    words = {*plain(message).split()}
    depends = listed("request_words", "conditional") & words
    called = listed("request_words", "male titles", "female titles") & words  # "for Mr Brown", whom nobody knows
    for entry, question in two_parts(message):
        apart = asks_plainly(question) and (message.startswith(question) or has_quotation(entry))
        brief, demanded = is_brief(question), demands(entry)
        if not (apart or ((brief or demanded) and not depends)):  # before the reader is asked, which costs more
            continue
        alone = reader.read(entry)
        plainly = alone.polarity["ordered"] > PLAINLY and any(alone.asks[ask] > PLAINLY for ask in WRITES)
        noted = alone.asks["note"] > SURE and not (apart or has_quotation(entry))
        if noted or not plainly or not (wanted := _asks(question, reader)):
            continue
        ordered, asked = cast(Any, (read(entry), read(question)))  # their fields are taken by name
        written = [ask for ask in ordered["asks"] if ask in WRITES]
        bare = brief and is_bare(entry, ordered, ordered["orders"], "linking")
        given = apart if "note" in written else (demanded or bare) and not depends
        given &= all(order["dose"] and order["how"] != "unknown" for order in ordered["orders"])
        told = [sum(map(bool, item.values())) for one in (ordered, whole) for item in one["allergies"][:1] or [{}]]
        given &= told[0] >= told[1]  # nothing of an allergy is told in the rest
        mine, people = ordered["patients"], whole["patients"]
        theirs = len(mine) == 1 or not (people or called) or not (mine or called or opened or people[1:])
        unsure = ordered["unclear"] or whole["unclear"] or not theirs
        of_order = "rx" in written and listed("request_words", "of_order") & {*plain(question).split()}
        if ordered["meant"] != "ordered" or not written or not given or of_order or unsure:
            continue
        joined = {key: [*ordered[key], *(one for one in asked[key] if one not in ordered[key])] for key in JOINED}
        wanted += [ask for ask in whole["asks"] if ask in TOPICS and ask not in wanted]
        other = {drug["name"] for drug in asked["drugs"]} - {drug["name"] for drug in ordered["drugs"]}
        joined["asks"] = [*written, *(ask for ask in wanted if ask != "may"), *(["may"] if other else [])]
        taken = {key: ordered[key] for key in (*ENTRIES, "meant")}
        most = max(len(ordered[key]) for key in ENTRIES)
        taken["owners"] = {ask: [[mine[0]["id"]]] * most for ask in written} if mine else {}
        return cast(Request, {**whole, **joined, **taken, "query": asked["query"], "details": {}})
    return None


def is_bare(said: str, request: Request, orders: Sequence[OrderRef], *lists: str) -> bool:
    """Whether what is said is an order and nothing else, "amox 500 tds 5/7 for Garcia", but words of these lists."""
    people = [f"{one['said']} {one['name']}" for one in request["patients"]]
    own = plain(" ".join(str(text) for text in [*people, *(field for order in orders for field in order.values())]))
    rest = {*plain(said).split()} - {*own.split()}
    return bool(orders) and rest <= listed("request_words", "beside_order", *lists)


def _asks(question: str, reader: Reader) -> list[str]:
    """What a part asks by itself; [] where it gives a condition or an entry of its own, or asks of the order."""
    if listed("request_words", "conditional") & {*plain(question).split()[:2]}:
        return []
    asks = reader.read(question).asks
    if any(asks[ask] > SURE for ask in ALONE):
        return []
    found = [ask for ask in LOOKED if asks[ask] > SURE]
    return found or (["labs"] if measures_in(question, sure=True) else [])
