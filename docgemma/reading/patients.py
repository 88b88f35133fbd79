"""Which patients a text means, by looking in the record store. A name that nobody has stays a name that nobody has."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from docgemma.ehr.base import NAMED, PatientMatch, RecordStore
from docgemma.ehr.identifiers import LABELS, Span, look_up, overlap, read_codes, trimmed
from docgemma.ehr.names import TITLES, Word, query_tokens, read_words, runs, spellings, telling
from docgemma.text.births import Birth, fitting, read_births

STATED = 6  # words before a year in which "born" may stand
JOINERS = frozenset({"and", "or", "vs", "versus"})
# what a mark that is slightly off takes with it
BESIDE = frozenset(
    {*LABELS, *JOINERS, *TITLES, "for", "of", "the", "on", "about", "with", "is", "born", "dob", "named", "called"}
)


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


@dataclass
class _Name:
    """The words of these places, written as `spelt`, are the name of these patients."""

    place: Span
    spelt: tuple[str, ...] = ()
    matches: list[PatientMatch] = field(default_factory=list)


def link_patients(
    text: str,
    store: RecordStore,
    names: Sequence[Span] = (),
    ids: Sequence[Span] = (),
    ordinary: Callable[[str], bool] = lambda word: False,
) -> list[PatientLink]:
    """The patients of a text in order of appearance, each once.

    Args:
        names, ids: places that a reader marked. Only there a name is corrected, and only there nobody can be meant,
            but for a known name with a birth date that nobody of that name has.
        ordinary: is this folded word an English word or a drug? Such a name counts only if it is capitalised within a
            sentence, or marked.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    return _merged(_links(text, store, names, ids, ordinary))


def _links(
    text: str, store: RecordStore, names: Sequence[Span], ids: Sequence[Span], ordinary: Callable[[str], bool]
) -> list[PatientLink]:
    """Every mention of a patient, in order."""
    births = read_births(text)
    coded = list(_by_code(text, store, names, ids, births))
    codes = [(link.start, link.end) for link in coded]
    births = [birth for birth in births if not _meets((birth.start, birth.end), codes)]
    taken = [*codes, *((birth.start, birth.end) for birth in births)]
    words = [word for word in read_words(text) if not _meets((word.start, word.end), taken)]
    free = [span for span in (*names, *ids) if not _meets(span, codes)]
    marks = [part for span in free for part in _parts(text, words, span)]
    found = _by_name(words, store, marks, ordinary)
    named = [(_link(text, words, name), name.spelt) for name in found]
    links = [*coded, *(link for link, _ in named)]
    narrowed = [_narrowed(text, link, spelt, _nearest(link, births, links), store) for link, spelt in named]
    return sorted([*coded, *narrowed], key=lambda link: link.start)


def find_people(text: str, store: RecordStore) -> list[PatientMatch]:
    """Patients with this id, MRN or name and birth date, the argument of a patient search: those whom all of it fits.

    Raises:
        StoreError: the store cannot be reached or read.
    """
    links = _links(text, store, [(0, len(text))], [], lambda word: False)
    codes = [(link.start, link.end) for link in links if link.kind == "id"]
    known = [{match.id for match in link.candidates} for link in links]
    # an id beside another patient's name is nobody's
    people = [match for link in links[:1] for match in link.candidates if all(match.id in ids for ids in known)]
    for birth in read_births(text):
        if not _meets((birth.start, birth.end), codes):
            fit = fitting(people, birth.days)
            people = fit if fit or birth.kind != "age" else people
    return people


def _by_code(
    text: str, store: RecordStore, names: Sequence[Span], ids: Sequence[Span], births: Sequence[Birth]
) -> Iterator[PatientLink]:
    """What is somebody's id or identifier, and what was marked as one, holds a digit and is nobody's."""
    marked = [span for span in (trimmed(text, mark, BESIDE) for mark in ids) if span]
    codes = read_codes(text, [*names, *ids], [(birth.start, birth.end) for birth in births])
    found = look_up(text, (*marked, *codes), store)
    taken: list[Span] = []
    for span in sorted(found, key=lambda span: not found[span]):
        nobody = span in marked and any(map(str.isdigit, text[slice(*span)]))
        if (found[span] or nobody) and not _meets(span, taken):
            taken.append(span)
            yield PatientLink(*span, text[slice(*span)], "id", tuple(found[span]), bool(found[span]))


def _parts(text: str, words: Sequence[Word], mark: Span) -> list[Span]:
    """The names within a mark, as places in `words`: "petrova and schäfer" are two."""
    parts: list[list[int]] = [[]]
    for at, word in enumerate(words):
        if 2 * (min(word.end, mark[1]) - max(word.start, mark[0])) < word.end - word.start:
            continue
        between = text[words[at - 1].end : word.start] if parts[-1] else ""
        if word.key in JOINERS or any(char in between for char in "&/;"):
            parts.append([])
        if word.key not in BESIDE:
            parts[-1].append(at)
    return [(part[0], part[-1] + 1) for part in parts if part]


def _by_name(
    words: Sequence[Word], store: RecordStore, marks: Sequence[Span], ordinary: Callable[[str], bool]
) -> list[_Name]:
    """What each mark means, and the names that are spelt as recorded elsewhere."""
    exact = _as_recorded(words, store, marks, ordinary)
    found: list[_Name] = []
    for mark in marks:
        whole = next((name for name in exact if overlap(name.place, mark)), None)
        if whole and all(_beside(words, at, whole.place, ordinary) for at in range(*mark)):
            found.append(whole)
        else:
            found.append(_searched(words, mark, store))
    return _apart([*found, *exact])


def _as_recorded(
    words: Sequence[Word], store: RecordStore, marks: Sequence[Span], ordinary: Callable[[str], bool]
) -> list[_Name]:
    """The names that somebody has, the longest first, without overlaps. One question to the store."""
    tried = [
        _Name(place, spelt)
        for place in runs(words)
        if _meets(place, marks) or telling(words, *place, ordinary)
        for spelt in spellings(words[slice(*place)])
    ]
    # a server asks for the first of these only
    asked = sorted(
        tried,
        key=lambda name: (not _meets(name.place, marks), not any(word.capital for word in words[slice(*name.place)])),
    )
    for name, matches in zip(asked, store.named([name.spelt for name in asked]) if asked else [], strict=True):
        name.matches = matches
    return _apart(name for name in tried if name.matches)


def _beside(words: Sequence[Word], at: int, whole: Span, ordinary: Callable[[str], bool]) -> bool:
    """Whether this word of a mark belongs to the name, or the mark is slightly off: "John Smith labs"."""
    cased = words[whole[0]].text[0].isupper() and words[at].text.islower()
    return whole[0] <= at < whole[1] or cased or words[at].is_plain(ordinary)


def _searched(words: Sequence[Word], mark: Span, store: RecordStore) -> _Name:
    """A marked name by the store's own search: given name alone, initials, beginnings, typing errors."""
    *inner, last = words[slice(*mark)]
    guesses: list[PatientMatch] = []
    for form in last.forms:
        words_said = (*(word.text for word in inner), form)
        found = store.search_patients(" ".join(words_said), limit=NAMED)
        if spelt := [match for match in found if not match.guessed]:
            return _Name(mark, words_said, spelt)
        guesses = guesses or found
    return _Name(mark, (), guesses)


def _link(text: str, words: Sequence[Word], name: _Name) -> PatientLink:
    start, last = words[name.place[0]].start, words[name.place[1] - 1]
    end = last.start + len(name.spelt[-1]) if name.spelt else last.end
    return PatientLink(start, end, text[start:end], "name", tuple(name.matches), bool(name.spelt))


def _nearest(link: PatientLink, births: Sequence[Birth], links: Sequence[PatientLink]) -> list[Birth]:
    """The births that stand nearer to this link than to any other."""
    return [birth for birth in births if min(links, key=lambda other: _gap(other, birth)) is link]


def _narrowed(
    text: str, link: PatientLink, spelt: tuple[str, ...], births: Sequence[Birth], store: RecordStore
) -> PatientLink:
    """The link with those candidates whom these births fit. What is no birth for sure never rules out everybody."""
    for birth in births:
        behind = text[link.end : birth.start].strip() in (",", "(") and birth.start >= link.end
        before = text[: birth.start].split()[-STATED:]
        told = (
            behind or before[-1:] == ["the"] or bool({"born", "b."} & set(before))
        )  # "the 1985 one"; "labs 2001" is no birth
        if not link.candidates or (birth.kind == "year" and not told):
            continue
        everybody: Sequence[PatientMatch] = link.candidates
        if len(everybody) >= NAMED and spelt:
            everybody = store.named([spelt], birth.days)[0]
        fit = fitting(everybody, birth.days)
        if fit or birth.kind == "stated" or (birth.kind in ("date", "year") and behind):
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
                    kept[at] = replace(other, candidates=link.candidates, exact=link.exact, by_birth=link.by_birth)
                break
        else:
            kept.append(link)
    return kept


def _apart(names: Iterable[_Name]) -> list[_Name]:
    """Without those that overlap an earlier one."""
    kept: list[_Name] = []
    for name in names:
        if not _meets(name.place, [other.place for other in kept]):
            kept.append(name)
    return kept


def _gap(link: PatientLink, birth: Birth) -> int:
    return max(birth.start - link.end, link.start - birth.end)


def _meets(span: Span, others: Iterable[Span]) -> bool:
    return any(overlap(span, other) for other in others)
