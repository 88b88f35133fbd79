"""Tell one patient from namesakes by what is said of them: birth, age, a problem, a medicine, an allergy. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from docgemma.reading.drugs import said_for
from docgemma.text.births import MONTHS, read_births
from docgemma.text.drugs import DrugNames
from docgemma.text.words import listed, names, phrases_in, plain

BY_AGE = ("older", "younger")  # lists of words that choose by age
MODIFIERS = 3  # words before a name that may describe
DESCRIBED = 8  # words of a description
ENDS = (". ", ", ", "; ", "? ", "! ", ": ", "- ", ") ")  # of a clause
VERBS = (" has ", " had ", " is ", " was ")  # what follows is said of who was described
EDGES = "(),.;:?!-"


def leading(text: str) -> tuple[str, str]:
    """The part of an answer that says who is meant, and what is asked behind it: "the 1949 one. last inr?"."""
    end = 0
    for clause in _clauses(text.replace(" one ", " one\n")):
        *words, last = plain(clause).split() or [""]
        named = last == "one" and 0 < len(words) <= MODIFIERS and not unsettled(" ".join(words))  # "77 yo, AF one"
        if telling(text[:end]) and not (named or clause[0].isdigit() or _describes(clause)):
            break
        end += len(clause)
    return text[:end].strip(), text[end:].strip()


def description(message: str, name: str) -> str:
    """How a message tells somebody from their namesakes: "the warfarin Wilson", "Wilson, the one with HFrEF"; without
    a name "the sertraline one"."""
    before, found, after = message.partition(name or " one")
    words = [] if before.strip()[-1:] in (*",.;:?!",) else before.split()[-MODIFIERS:]
    lower = [word.casefold() for word in words]
    told = words[len(lower) - lower[::-1].index("the") :] if "the" in lower else []
    told = told if told or not words or not words[-1].endswith("-") else words[-1:]  # "HFrEF-wilson"
    if excludes(" ".join(words)) or listed("request_words", "stop") & set(map(plain, told)):
        told = []  # "not the 1949 one", "the warfarin for wilson"
    if not name and (unsettled(after) or read_births(after)):
        return ""
    pointed = name or "the" in lower  # "and the one on sertraline?"
    clause = next(iter(_clauses(after.lstrip(" ,"))), "").strip() if pointed and found else ""
    one = clause.partition(" not the ")[0]  # "the zoloft one not the heart one"
    clause = one if " one" in one else clause
    for verb in VERBS:
        clause = clause.partition(verb)[0]
    behind = clause.replace("’", "'").split()
    if aged := _aged(behind):
        return " ".join([*told, *behind[:aged]]).strip(EDGES)
    said = clause.startswith(("the ", "(", "with the ")) or (not name and _describes(clause))
    return " ".join([*told, *(behind if said else [])]).strip(EDGES)


def in_passing(message: str, name: str, drugs: Sequence[dict[str, Any]]) -> str:
    """What a message says by the way of whom it names: his problems, beside the name, and the `drugs` that it calls
    his: "wilson T1DM, fasting, skip his lantus?". What is asked, doubted or denied says nothing, nor does age alone."""
    before, _, after = message.partition(name) if name else ("", "", "")
    ahead, behind = (_clauses(before) or [""])[-1], after.lstrip(" ,(")
    relatives = listed("request_words", "others") - listed("request_words", "colleagues")
    if excludes(ahead) or relatives & set(plain(message).split()):
        return ""
    year = [behind[:2]] if behind[:2].isdecimal() and behind[2:3] in (*EDGES,) else []  # "wilson, 01. weight"
    near = plain(ahead + (_clauses(behind[3 * len(year) :]) or [""])[0])
    by_age = listed("request_words", *BY_AGE)
    known = {*by_age, *said_for("conditions"), *(one["name"] for one in said_for("conditions").values())}
    told = phrases_in(near, [(phrase, phrase) for phrase in sorted(known, key=len, reverse=True)])[0]
    questions = ("asking",) if _describes(after) else ("asking", "questioning")  # "does wilson with AF", not "have AF"
    doubted = listed("request_words", "doubting", "beginning", *questions) & set(near.split())
    doubted |= {one for one in told if {f"{one}?", f"?{one}"} & set(message.casefold().split())}
    said = [*([] if doubted else told), *_owned(message, drugs)]
    return " ".join([*said, *year]) if set(said) - by_age else ""


def described(
    text: str, charts: dict[str, dict[str, Any]], drugs: DrugNames | None = None, namesakes: bool = True
) -> str | None:
    """The id of the one option whom all that a short text says fits: "the older one with AF", "'49", "the codeine one".
    What asks ("is he on sertraline"), excludes, or says more than charts have ("with sertraline overdose") chooses
    nobody; by "older" alone one is told from `namesakes` only."""
    words, (births, rest) = plain(text).split(), _births(text)
    short = said_for("abbreviations") | said_for("conditions")
    asks = [word for before, word in pairwise(["", *words]) if before not in ("who", "that")]
    called = plain(" ".join(chart["patient"]["name"] for chart in charts.values())).split()
    known = [word for word in telling(rest) if word not in called]
    by_age, asked = listed("request_words", *BY_AGE), listed("request_words", "asking", "questioning") & set(asks)
    asked |= {"?"} if text.endswith("?") and not {"the", "one"} & set(words) else set()  # "and sertraline?"
    if asked or excludes(text) or len(known) > DESCRIBED:
        return None
    born = {option: chart["patient"]["birth_date"] for option, chart in charts.items()}
    fits = [{option for option in charts if born[option].startswith(days)} for days in births]
    for word in known:
        if word not in by_age:
            said = [word, short[word]["name"] if word in short else (drugs and drugs.generic(word)) or word]
            fits.append({option for option, chart in charts.items() if names(said, _listing(chart))})
    if not (fits or namesakes):
        return None
    fitting, ages = set(charts).intersection(*fits), [word for word in known if word in by_age]
    if not ages:
        return fitting.pop() if fits and len(fitting) == 1 else None
    among = {born[option]: option for option in (fitting if len(fitting) > 1 else charts)}
    if len(among) < max(len(fitting), 2) or "" in among:  # born on one day, or nobody
        return None
    chosen = among[(min if ages[0] in listed("request_words", "older") else max)(among)]
    return chosen if chosen in fitting else None


def excludes(text: str) -> bool:
    """Whether an answer leaves one out: "not the 1949 one"; "no, the 1949 one" does not."""
    return bool(listed("request_words", "excluding") & set(plain(text).removeprefix("no ").split()))


def unsettled(more: str) -> bool:
    """Whether what stands behind a choice takes it back: "the 1949 one, no wait", "the AF one or the older one?"."""
    words = set(plain(more).split())
    return bool(words & (listed("request_words", "correcting", *BY_AGE) | {"one", "or", "wait"}))


def telling(text: str) -> list[str]:
    """The words of an answer that may name an option."""
    filler = frozenset[str]().union(*(listed("request_words", key) for key in ("stop", "persons", "answer")))
    words = [word for word in plain(text).split() if word not in filler]
    return [word.removesuffix("'s").replace("'", "") for word in words]


def _clauses(text: str) -> list[str]:
    """Its clauses, each with the mark and the blank behind it."""
    for end in ENDS:
        text = text.replace(end, f"{end[0]}\n")
    return text.splitlines(keepends=True)


def _describes(clause: str) -> bool:
    """Whether a clause goes on with who is meant: "with AF", "the one on warfarin", "born 1949", "in his 70s"."""
    words = clause.casefold().split()
    return bool(_aged(words) or (words and words[0].strip(EDGES) in listed("request_words", "describing")))


def _owned(message: str, drugs: Sequence[dict[str, Any]]) -> list[str]:
    """The drugs that a message says are taken: "rpt request sertraline + omep", "his lantus", not "can he go on"."""
    said, end = list[str](), 0
    unsure = listed("request_words", "asking", "questioning", "beginning", "going", "excluding")
    for drug in drugs:
        before, _, after = message[end:].partition(drug["said"])
        words = plain((_clauses(before) or [""])[-1]).split()
        his = listed("request_words", "owning") & set(words[-2:]) and not excludes(" ".join(words))
        taken = listed("request_words", "taken_by") & set(words[-1:]) and after[:1] != "?" and not unsure & set(words)
        if his or taken or (said and plain(before) in listed("request_words", "joining")):
            said, end = [*said, drug["name"].casefold()], len(message) - len(after)
    return said


def _aged(words: list[str]) -> int:
    """How many words tell a birth: "'49", "77M", "dec 2001", "in his 70s"; a bare number may be anything."""
    first, second, third = [*(word.strip(EDGES) for word in words[:3]), "", "", ""][:3]
    if first[:3].casefold() in MONTHS and second.isdecimal():
        return 2
    if first == "in" and second in listed("request_words", "persons") and third[:2].isdecimal():
        return 3
    marked = first.startswith("'") or first[-1:].casefold() in ("m", "f")
    return int(marked and len(first) == 3 and first.strip("'MmFf").isdecimal())


def _births(text: str) -> tuple[list[tuple[str, ...]], str]:
    """The beginnings of the ISO dates that each birth, year or age of a text may be, and the text without them."""
    found: list[tuple[str, ...]] = []
    for birth in reversed(read_births(text)):
        before, days = text[: birth.start].split(), birth.days
        if birth.kind == "year" and before and (month := before[-1][:3].casefold()) in MONTHS:
            before, days = before[:-1], (f"{days[0]}-{MONTHS.index(month) + 1:02}",)  # "dec 2001"
        found.append(days)
        text = f"{' '.join(before)} {text[birth.end :]}"
    rest: list[str] = []
    for word in plain(text).split():
        digits = word.strip("'").rstrip("smf")
        if rest and (month := rest[-1][:3]) in MONTHS and len(digits) == 2 and digits.isdecimal():  # "feb '49"
            found.append(tuple(f"{century}{digits}-{MONTHS.index(month) + 1:02}" for century in (19, 20)))
            rest.pop()
        elif len(digits) != 2 or not digits.isdecimal():
            rest.append(word)
        else:
            ages = range(int(digits), int(digits) + (10 if word.endswith("s") else 1))  # "77M", "70s"
            years = [day for age in ages for day in read_births(f"{age} yo")[0].days]
            found.append((*years, *((f"19{digits}", f"20{digits}") if word.strip("'") == digits else ())))
    return found, " ".join(rest)


def _listing(chart: dict[str, Any]) -> str:
    """The active medicines, problems and allergies of a chart."""
    entries = [item["name"] for item in [*chart["medications"], *chart["conditions"]] if item["active"]]
    return "; ".join([*entries, *(item["substance"] for item in chart["allergies"] if item["active"])])
