"""The allergies of a message, each with the reactions and the severity of its own clause."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise

from docgemma.reading.drugs import link_drug
from docgemma.reading.marked import Marked, denied, found_at, pieces_of, within
from docgemma.reading.meant import SURE
from docgemma.reading.reader import Reading, Span
from docgemma.text.clauses import EDGES, masked, widened
from docgemma.text.drugs import DrugNames
from docgemma.text.said import CLAUSE_ENDS, bracketed, closed, is_mechanism
from docgemma.text.words import listed, plain


def read_allergies(marked: Marked, drugs: DrugNames) -> list[dict[str, str]]:
    """Each substance once with its reactions: those behind it, or those before it where a reaction stands first."""
    reactions, marks = reactions_of(marked), _bracketed(marked.message, marked.spans("alg.subst"))
    if caused := _caused(marked, reactions):
        return [caused]
    keys = [link_drug(span.text, drugs).name.casefold() for span in marks]
    found = {key: (span.text, list[str]()) for key, span in reversed([*zip(keys, marks, strict=True)])}
    leading = bool(reactions and marks) and reactions[0][0] < marks[0].start
    causes = False
    for place, text in reactions if marks else []:
        behind = sum(span.start < place for span in marks)  # the first mark behind it
        between = marked.message[place + len(text) : marks[behind].start] if behind < len(marks) else ""
        follows = plain(between) in listed("entries", "causing")  # "warfarin clinic: rash w clarithromycin"
        causes |= follows and behind > 0
        owner = behind if follows else min(behind, len(keys) - 1) if leading else max(behind - 1, 0)
        found[keys[owner]][1].append(text)
    clauses = _allergy_clauses(marked.message, marks)
    if sum(bool(of) for _, of in found.values()) < 2:  # "rash after contrast (iohexol) on monday, moderate"
        clauses = [range(len(marked.message))] * len(marks)
    own = {key: {at for one, places in zip(keys, clauses, strict=True) if one == key for at in places} for key in keys}
    told = [(key, *found[key]) for key in own if found[key][1] or not causes]
    return [
        {"substance": said, "reaction": ", ".join(of), "severity": severity_of(marked, of, own[key])}
        for key, said, of in told
    ]


def _bracketed(message: str, marks: Sequence[Span]) -> list[Span]:
    """Each substance with another name of it in brackets, "contrast (iohexol)", as one."""
    found: list[Span] = []
    for span in marks:
        if found and message[found[-1].end : span.start].strip() == "(" and message[span.end : span.end + 1] == ")":
            start, end = found.pop().start, span.end + 1
            span = Span(message[start:end], start, end, span.score)
        found.append(span)
    return found


def _caused(marked: Marked, reactions: Sequence[tuple[int, str]]) -> dict[str, str]:
    """The allergy whose only reaction says itself from what it came, "had the CT, hives from the contrast"; else {}:
    the other substances are what was done, or what helped."""
    place, text = reactions[0] if len(reactions) == 1 else (0, "")
    reaction, mark, cause = text.partition(" from ")
    cause = cause.removeprefix("the ").strip()
    inside = any(place < span.start < place + len(text) for span in marked.spans("alg.subst"))
    if not mark or not cause or inside or marked.spans("rx.drug"):
        return {}
    severity = severity_of(marked, [reaction], range(len(marked.message)))
    return {"substance": cause, "reaction": reaction, "severity": severity}


def _allergy_clauses(message: str, marks: Sequence[Span]) -> list[range]:
    """The clause of each allergy: what stands behind the last mark or "and" before it; "a and b" is one of both."""
    ended = message.translate(CLAUSE_ENDS).replace(" and ", "\n" * len(" and "))
    edges = [ended.rfind("\n", one.end, after.start) + 1 or after.start for one, after in pairwise(marks)]
    clauses = [range(*ends) for ends in pairwise([0, *edges, len(message)])]
    for at in reversed(range(len(edges))):
        between = {*plain(message[marks[at].end : marks[at + 1].start]).split()}
        if between and not between - listed("request_words", "joining"):
            clauses[at] = range(clauses[at].start, clauses[at + 1].stop)
    return clauses


def substance_behind(reading: Reading, message: str) -> Reading:
    """The reading without a drug that is ordered or taken among the substances, where another is said; what stands
    behind "allergy to" is one: "start Brufen 200 mg tds and record allergy to egg"."""
    spans, doses = reading.spans, {span.start for span in reading.spans.get("rx.dose", [])}
    marks, reactions = spans.get("alg.subst", []), [span.start for span in spans.get("alg.react", [])]
    dosed = [span for span in marks if span.end + 1 in doses]
    behind = _behind_word(message, bare=bool(reactions and not marks))
    named = [span.start for name in ("name", "id") for span in spans.get(name, [])]
    behind = [span for span in behind if span.start not in reactions and not {*named} & {*range(span.start, span.end)}]
    rest = [span for span in marks if span not in dosed] or behind
    ordered = reading.asks["rx"] > SURE
    if not ordered and marks:  # "rash after ibuprofen 400 mg, allergic to egg": both are
        words = {*plain(message[dosed[-1].end : rest[0].start]).split()} if dosed and rest else set()
        told = words & listed("request_words", "allergy_words")
        dosed = dosed if told and dosed[0].start < min(reactions, default=len(message)) else []
    if not rest or (marks and not dosed) or rest[0].start in {span.start for span in dosed}:
        return reading
    channel = "rx.drug" if ordered else "drug"
    drugs = {span.start: span for span in [*dosed, *spans.get(channel, [])]}
    first = dosed[0].start if dosed and not ordered else rest[0].start  # "EpiPen 0.3 mg for anaphylaxis. Allergy: bees"
    outside = [span for span in spans.get("alg.react", []) if span.start >= rest[0].end or span.end <= first]
    found = {**spans, "alg.subst": rest, channel: [drugs[at] for at in sorted(drugs)], "alg.react": outside}
    return replace(reading, spans={name: kept for name, kept in found.items() if kept})


def _behind_word(message: str, bare: bool) -> list[Span]:
    """The clause behind "allergy to" or "allergy:", and, where nothing else is marked (`bare`), behind "allergy"."""
    ends = (" to ", ": ", " ")[: 2 + bare]
    marks = [f"{word}{end}" for word in listed("request_words", "allergy_words") for end in ends]
    places = [message.casefold().rfind(mark) + len(mark) for mark in marks if mark in message.casefold()]
    at = max(places, default=len(message))
    told = message[at:].translate(CLAUSE_ENDS).replace("(", "\n").split("\n")[0].split(" - ")[0].strip()
    return [Span(told, at, at + len(told), 1)] if told else []


def reactions_of(marked: Marked) -> list[tuple[int, str]]:
    """Each reaction once, with what completes it: "broke out in hives", "throat swelling 2019 per husband"."""
    message, wide = marked.message, list[tuple[int, int]]()
    rest = masked(message, [*marked.people, *marked.places("alg.subst", "alg.react", "name", "id", "severity")])
    marks = marked.spans("alg.react") or found_at(marked, listed("entries", "reactions"))
    inside = [(one.start, one.end) for one in marked.spans("alg.subst") if within(one, marks)]
    marks = pieces_of(masked(message, inside), marks) if inside else marks  # "rash, shellfish vomiting"
    for span in marks:
        start, end = widened(rest, (span.start, span.end), behind=True)
        if wide and message[wide[-1][1] : start].strip() in listed("request_words", "linking"):
            start = wide.pop()[0]
        wide.append((start, end))
    pieces = [(start, message[start:end].strip(f"{EDGES}+&")) for start, end in wide]
    told = [(start, text) for start, text in pieces if not is_mechanism(text)]
    return [item for at, item in enumerate(told) if not any(plain(item[1]) in plain(one) for _, one in told[:at])]


def severity_of(marked: Marked, reactions: Sequence[str], own: Collection[int]) -> str:
    """How severe an allergy is, by its own clauses: their places in the message."""
    spans = [span for span in marked.reading.spans.get("severity", []) if span.start in own]
    told = [span for span in spans if not denied(marked.message, span)]
    between = [plain(marked.message[one.end : after.start]).split() for one, after in pairwise(told)]
    changed = [at for at, words in enumerate(between, 1) if listed("request_words", "correcting") & {*words}]
    told = told[changed[-1] :] if changed else told  # "mild; no, moderate"
    rest = "".join(char for at, char in enumerate(marked.message) if at in own)
    said = closed(max(told, key=lambda span: span.score).text, "severities") if told else bracketed(rest)
    return said or ("severe" if any("anaphyla" in plain(item) for item in reactions) else "")
