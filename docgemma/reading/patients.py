"""Link the patients of a message to the record store. A name that nobody has stays a name that nobody has."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from docgemma.ehr.base import NAMED, PatientMatch, RecordStore
from docgemma.ehr.identifiers import LABELS, Span, identifier_key, look_up, overlap, read_codes, trimmed
from docgemma.ehr.names import TITLES, Word, query_tokens, read_words, runs, spellings, telling
from docgemma.reading.terms import everyday, given_names, in_full, measure_said
from docgemma.state import PatientRef
from docgemma.text.births import Birth, fitting, is_age_and_sex, is_clock, read_births
from docgemma.text.words import SHORT, plain

BEGINNING, STATED = 6, 6  # letters and digits of an id; words before a year in which "born" may stand
RESULTS = 10  # years; an older date beside a name is a birth's
JOINERS = frozenset({"and", "or", "vs", "versus"})
# what a mark that is slightly off takes with it
BESIDE = frozenset({*LABELS, *JOINERS, *TITLES, *"for of the on about with is born dob named called something".split()})
Ordinary = Callable[[str], bool]  # is this folded word an English word or a drug, and no surname by itself?


@dataclass(frozen=True)
class PatientLink:
    """A place in a text and whom it means: one candidate is resolved, several are ambiguous, best first; none means
    that nobody has this name or id, or nobody of that name was born then. `exact`: written as it is recorded."""

    start: int
    end: int
    text: str
    kind: Literal["id", "name"]
    candidates: tuple[PatientMatch, ...]
    exact: bool
    by_birth: bool = False  # a birth date, year or age narrowed the candidates
    spelt: tuple[str, ...] = ()  # the words of a name as they are recorded

    @property
    def place(self) -> Span:
        return self.start, self.end


def read_people(
    message: str,
    names: Sequence[Span],
    ids: Sequence[Span],
    store: RecordStore,
    ordinary: Ordinary,
    beside: Sequence[Span],
) -> list[PatientLink]:
    """The patients of a message, each once; a name that nobody has stays one without candidates."""
    found = link_patients(message, store, names, ids, ordinary)
    free = [link for link in found if not any(start <= link.start < end for start, end in beside)]
    links = [link for whole in free for link in _by_surnames(whole, store, ordinary)]
    return [link for link in links if link.candidates or link.by_birth or _somebody(link, ordinary)]


def _somebody(link: PatientLink, ordinary: Ordinary) -> bool:
    """Whether it names somebody, though unknown: "maria lopez" does, "k", "ooh", "drain" and "hba1c" do not."""
    words = [word for word in plain(link.text).split() if len(word) > 1 or len(link.text) == 1]
    words = [word for word in words if not is_age_and_sex(word)]  # "44F"
    named = not all(map(ordinary, words)) or (len(words) > 1 and (words[0] in given_names() or in_full(words[:1])))
    measure = plain(link.text) in everyday() or measure_said(plain(link.text))  # "HLA-B*5801"
    return not (measure or is_age_and_sex(link.text)) if link.kind == "id" else bool(named)


def born_on(message: str, ids: Sequence[Span], store: RecordStore) -> list[PatientLink]:
    """Who was born on a day that is given, where nobody is named; nobody, where one of these places states it."""
    for birth in read_births(message):
        days = [day for day in birth.days if len(day) == 10]
        people = store.born(days) if days and birth.kind in ("stated", "date") else []
        if people:
            return [PatientLink(birth.start, birth.end, people[0].name, "name", tuple(people), True, True)]
        stated = [span for span in ids if birth.kind == "stated" and overlap(span, (birth.start, birth.end))]
        if stated:
            return [PatientLink(*stated[0], message[slice(*stated[0])], "id", (), False)]
    return []


def as_patient(link: PatientLink) -> PatientRef:
    """The one candidate of a link, and what to search for: "" where an id was given."""
    match = link.candidates[0]
    born = f", born {match.birth_date}" if match.birth_date and link.by_birth else ""
    name = match.name if not link.exact or link.text[:1].isdigit() else link.text
    search = "" if link.kind == "id" else f"{name}{born}"
    return PatientRef(
        id=match.id, name=match.name, label=match.label, sex=match.sex, said=link.text, search=search, exact=link.exact
    )


def as_unclear(link: PatientLink, message: str) -> str:
    """A name that nobody, or more than one, has; with the birth date that nobody of that name has."""
    told = ("stated", "date", "year") if link.by_birth else ("stated", "date")
    births = [birth.days for birth in read_births(message) if birth.kind in told and link.kind == "name"]
    name = link.text.removesuffix("'s").removesuffix("’s")
    return f"{name}, born {' or '.join(births[-1])}" if births and not link.candidates else name


def find_people(text: str, store: RecordStore) -> list[PatientMatch]:
    """Patients with this id, MRN or name and birth date, the argument of a patient search: those whom all of it fits.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    links = _links(text, store, [(0, len(text))], [], lambda word: False)
    codes = [link.place for link in links if link.kind == "id"]
    known = [{match.id for match in link.candidates} for link in links]
    # an id beside another patient's name is nobody's
    people = [match for link in links[:1] for match in link.candidates if all(match.id in ids for ids in known)]
    for birth in read_births(text):
        if not _meets((birth.start, birth.end), codes):
            fit = fitting(people, birth.days)
            people = fit if fit or birth.kind != "age" else people
    return people


def link_patients(
    text: str,
    store: RecordStore,
    names: Sequence[Span] = (),
    ids: Sequence[Span] = (),
    ordinary: Ordinary = lambda word: False,
) -> list[PatientLink]:
    """The patients of a text in order of appearance, each once.

    Args:
        names, ids: places that a reader marked. Only there a name is corrected, and only there nobody can be meant,
            but for a known name with a birth date that nobody of that name has.
        ordinary: such a name counts only if it is capitalised within a sentence, or marked.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    return _merged(_links(text, store, names, ids, ordinary))


def _links(
    text: str, store: RecordStore, names: Sequence[Span], ids: Sequence[Span], ordinary: Ordinary
) -> list[PatientLink]:
    """Every mention of a patient, in order."""
    births = read_births(text)
    coded = list(_by_code(text, store, names, ids, births))
    codes = [link.place for link in coded]
    births = [birth for birth in births if not _meets((birth.start, birth.end), codes)]
    taken = [*codes, *((birth.start, birth.end) for birth in births)]
    words = [word for word in read_words(text) if not _meets((word.start, word.end), taken)]
    parts = [part for span in (*names, *ids) if not _meets(span, codes) for part in _parts(text, words, span)]
    marks = [part for part in parts if any(len(word.key) > 1 for word in part)]
    named = _by_name(text, words, store, marks, ordinary)
    owners = [
        min([*coded, *named], key=lambda link: max(birth.start - link.end, link.start - birth.end), default=None)
        for birth in births
    ]
    narrowed = [
        _narrowed(text, link, [birth for birth, owner in zip(births, owners, strict=True) if owner is link], store)
        for link in named
    ]
    spelt = [identifier_key(text[slice(*span)]) for span in read_codes(text, (), ())]
    keys = tuple(key for key in spelt if len(key) >= BEGINNING)
    links = [_begun(link, keys) for link in [*coded, *narrowed]]
    meant = {identifier_key(match.id) for link in links for match in link.candidates}
    begun = tuple(key for key in keys if any(other.startswith(key) for other in meant))
    free = [link for link in links if not _is_called(text, link.start)]
    less = (link.text for link in free if len(link.text) < SHORT or is_clock(link.text))
    gone = {*less, *(link.text for link in links if identifier_key(link.text) in begun)} if meant else set()
    return sorted((link for link in links if link.candidates or link.text not in gone), key=lambda link: link.start)


def _by_code(
    text: str, store: RecordStore, names: Sequence[Span], ids: Sequence[Span], births: Sequence[Birth]
) -> Iterator[PatientLink]:
    """What is somebody's id or identifier, and what was marked as one, holds a digit and is nobody's."""
    marked = [span for span in (trimmed(text, mark, BESIDE) for mark in ids) if span]
    codes = read_codes(text, [*names, *ids], [(birth.start, birth.end) for birth in births])
    found = look_up(text, (*marked, *codes), store)
    taken: list[Span] = []
    for span in sorted(found, key=lambda span: not found[span]):
        dated = _meets(span, [(birth.start, birth.end) for birth in births if birth.kind in ("date", "stated")])
        called = span in marked or _is_called(text, span[0])
        nobody = called and any(map(str.isdigit, text[slice(*span)])) and not dated
        if (found[span] or nobody) and not _meets(span, taken):
            taken.append(span)
            yield PatientLink(*span, text[slice(*span)], "id", tuple(found[span]), bool(found[span]))


def _is_called(text: str, start: int) -> bool:
    """Whether an id is said to be one: "id 403"."""
    return text[:start].rstrip(" :#").casefold().split()[-1:] == ["id"]


def _begun(link: PatientLink, codes: tuple[str, ...]) -> PatientLink:
    """One of several namesakes by the beginning of an id: "wilson (5dff2ce3)"."""
    fit = [match for match in link.candidates if identifier_key(match.id).startswith(codes)] if codes else []
    return replace(link, candidates=tuple(fit), kind="id") if fit and len(link.candidates) > 1 else link


def _parts(text: str, words: Sequence[Word], mark: Span) -> list[Sequence[Word]]:
    """The names within a mark: "petrova and schäfer" are two."""
    parts: list[list[int]] = [[]]
    for at, word in enumerate(words):
        if 2 * (min(word.end, mark[1]) - max(word.start, mark[0])) < word.end - word.start:
            continue
        between = text[words[at - 1].end : word.start] if parts[-1] else ""
        if word.key in JOINERS or any(char in between for char in "&/;"):
            parts.append([])
        if word.key not in BESIDE:
            parts[-1].append(at)
    return [words[part[0] : part[-1] + 1] for part in parts if part]


def _by_name(
    text: str, words: Sequence[Word], store: RecordStore, marks: Sequence[Sequence[Word]], ordinary: Ordinary
) -> list[PatientLink]:
    """What each mark means, and the names that are spelt as recorded elsewhere."""
    places = [(mark[0].start, mark[-1].end) for mark in marks]
    exact = _as_recorded(text, words, store, places, ordinary)
    found: list[PatientLink] = []
    for mark, place in zip(marks, places, strict=True):
        whole = next((link for link in exact if overlap(link.place, place)), None)
        fits = whole and all(_belongs(word, whole, ordinary) for word in mark)
        found.append(whole if whole and fits else _searched(text, mark, store, ordinary))
    return _apart([*found, *exact])


def _as_recorded(
    text: str, words: Sequence[Word], store: RecordStore, marks: Sequence[Span], ordinary: Ordinary
) -> list[PatientLink]:
    """The names that somebody has, the longest first, without overlaps. One question to the store."""
    tried = []
    for first, behind in runs(words):
        name = words[first:behind]
        marked = _meets((name[0].start, name[-1].end), marks)
        letter = len(name) == 1 and len(name[0].key) == 1  # "Shevchenko O." is one person
        if not letter and (marked or telling(words, first, behind, ordinary)):
            first_asked = not marked, not any(word.capital for word in name)  # a server asks for the first only
            tried += [(first_asked, _named(text, name, spelt)) for spelt in spellings(name)]
    asked = [link for _, link in sorted(tried, key=lambda item: item[0])]
    found = dict(zip(asked, store.named([link.spelt for link in asked]) if asked else [], strict=True))
    return _apart(replace(link, candidates=tuple(found[link])) for _, link in tried if found[link])


def _named(
    text: str, name: Sequence[Word], spelt: tuple[str, ...] = (), matches: Sequence[PatientMatch] = ()
) -> PatientLink:
    end = name[-1].start + len(spelt[-1]) if spelt else name[-1].end
    start = name[0].start
    return PatientLink(start, end, text[start:end], "name", tuple(matches), exact=bool(spelt), spelt=spelt)


def _belongs(word: Word, whole: PatientLink, ordinary: Ordinary) -> bool:
    """Whether this word of a mark belongs to the name, or the mark is slightly off: "John Smith labs"."""
    cased, full = whole.text[0].isupper() and word.text.islower(), in_full(word.forms)
    mine = any(full & set(query_tokens(match.name)) for match in whole.candidates)  # "becky goldstein"
    short = len(word.key) < SHORT and word.text.isupper() and ordinary(word.key)  # "moreau IDA" has no second name
    other = (full or word.key in given_names()) and not short  # "anna volkov" is not Dmitri
    return whole.start <= word.start < whole.end or cased or mine or short or (not other and word.is_plain(ordinary))


def _searched(text: str, mark: Sequence[Word], store: RecordStore, ordinary: Ordinary) -> PatientLink:
    """A marked name by the store's own search: in short, initials, beginnings, typing errors; "MAR" is no Maria."""
    full = in_full(mark[0].forms) if len(mark) == 1 else ()
    if len(people := {one.id: one for name in full for one in store.search_patients(name) if not one.guessed}) == 1:
        return _named(text, mark, (), [*people.values()])
    guesses: list[PatientMatch] = []
    for form in mark[-1].forms:
        said = (*(word.text for word in mark[:-1]), form)
        found = store.search_patients(" ".join(said), limit=NAMED)
        if spelt := [match for match in found if not match.guessed]:
            return _named(text, mark, said, spelt)
        guesses = guesses or found
    none = mark[0].is_plain(ordinary) or len(mark[0].key) < SHORT  # "SUP" is no Suparman
    return _named(text, mark, (), [] if len(mark) == 1 and none else guesses)


def _narrowed(text: str, link: PatientLink, births: Sequence[Birth], store: RecordStore) -> PatientLink:
    """The link with those candidates whom these births fit. What is no birth for sure never rules out everybody."""
    for birth in births:
        behind = text[link.end : birth.start].strip() in (",", "(") and birth.start >= link.end
        before = text[: birth.start].casefold().split()[-STATED:]
        told = before[-1:] == ["the"] or not {"born", "b.", "b"}.isdisjoint(before)
        told |= behind or text[link.end : birth.start].isspace()  # "wilson 1985"
        told &= "not" not in before  # "not the 1949 wilson"; and "labs 2001" is no birth
        if not link.candidates or (birth.kind == "year" and not told):
            continue
        everybody: Sequence[PatientMatch] = link.candidates
        if len(everybody) >= NAMED and link.spelt:
            everybody = store.named([link.spelt], birth.days)[0]
        fit = fitting(everybody, birth.days)
        old = told and all(int(day[:4]) < date.today().year - RESULTS for day in birth.days)  # "schaefer 02/10/1934"
        if fit or birth.kind == "stated" or (birth.kind != "age" and behind) or (birth.kind == "date" and old):
            link = replace(link, candidates=tuple(fit), by_birth=True)
    return link


def _merged(links: Sequence[PatientLink]) -> list[PatientLink]:
    """One link a patient: a mention of the same, or of some of the same, settles the earlier one; so does
    one that repeats the name of somebody who does not exist."""
    kept: list[PatientLink] = []
    for link in links:
        ids = {match.id for match in link.candidates}
        for at, other in enumerate(kept):
            known = {match.id for match in other.candidates}
            nobody = not known and link.kind == "name" and set(query_tokens(link.text)) <= set(query_tokens(other.text))
            if nobody or (ids and known and (ids <= known or known <= ids)):
                if not nobody and len(ids) < len(known):
                    kept[at] = replace(link, start=other.start, end=other.end, text=other.text, spelt=other.spelt)
                break
        else:
            kept.append(link)
    return kept


def _by_surnames(link: PatientLink, store: RecordStore, ordinary: Ordinary) -> list[PatientLink]:
    """A name that nobody has, by the surnames in it: "goldstein, nowak" are two, "Len Abernathy" may be Leonard."""
    words = plain(link.text).replace("/", " ").removesuffix("'s").split()
    if link.candidates or link.kind != "name" or link.by_birth:
        return [link]
    people = {part: store.named([[part]])[0] for part in words if len(part) > 2}
    known, rest = [part for part in people if people[part]], {part for part in people if not people[part]}
    other = rest & given_names() or in_full(rest)
    if known and ("," in link.text or len(known) == 1) and all(map(ordinary, rest)) and not other:
        return [PatientLink(*link.place, part, "name", tuple(people[part]), True) for part in known]
    namesakes = people.get(words[-1], []) if len(words) > 1 else []
    alike = [match for match in namesakes if any(part[:2] == words[0][:2] for part in plain(match.name).split()[:-1])]
    return [replace(link, candidates=tuple(alike), exact=False)] if len(alike) == 1 else [link]


def _apart(links: Iterable[PatientLink]) -> list[PatientLink]:
    """Without those that overlap an earlier one."""
    kept: list[PatientLink] = []
    for link in links:
        if not _meets(link.place, [other.place for other in kept]):
            kept.append(link)
    return kept


def _meets(span: Span, others: Iterable[Span]) -> bool:
    return any(overlap(span, other) for other in others)
