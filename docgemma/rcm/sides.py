"""Which side of the body a text speaks of, and of which part. Pure; words are data in `data/rcm/sides.yaml`."""

from collections.abc import Sequence
from functools import lru_cache

from docgemma.rcm.assertion import hits
from docgemma.rcm.sentences import Word, lists, words_of

BOTH = frozenset({"left", "right"})


@lru_cache(maxsize=20_000)
def sides(text: str) -> frozenset[str]:
    """{"left"}, {"right"}, both for "bilateral" and "b/l", or nothing. "He left the clinic" is none."""
    data, words = lists("sides"), words_of(text)
    free = {at for start, end in hits(data["none"], words) for at in range(start, end)}
    said = {side for side in ("left", "right") for start, _ in hits(data[side], words) if start not in free}
    if any(start not in free for start, _ in hits(data["both"], words)):
        said |= BOTH
    return frozenset(said | {data["letters"][words[at].text] for at in range(len(words)) if _letter(words, at)})


@lru_cache(maxsize=20_000)
def parts(text: str) -> frozenset[str]:
    """The parts of the body that a text names, as fine as it does: {"knee"}, {"leg"}."""
    data, words = lists("sides"), words_of(text)
    fine = {name for name, terms in data["finer"].items() if hits(terms, words)}
    coarse = {name for name, terms in data["parts"].items() if hits(terms, words)}
    known = {word for name in fine for word in data["finer"][name]}
    return frozenset(
        fine | {name for name in coarse if hits([t for t in data["parts"][name] if t not in known], words)}
    )


def same_part(one: str, other: str) -> bool:
    """Whether two texts speak of one part; a "leg" may mean the knee, a hip never does."""
    mine, theirs, fine = parts(one), parts(other), lists("sides")["finer"]
    if mine & theirs:
        return True
    regions = {
        name: region
        for region, terms in lists("sides")["parts"].items()
        for name in fine
        if set(fine[name]) & set(terms)
    }
    return bool(
        {regions.get(name) for name in mine} & (theirs - set(fine))
        or {regions.get(name) for name in theirs} & (mine - set(fine))
    )


def _letter(words: Sequence[Word], at: int) -> bool:
    """A capital L or R next to a part of the body: "L knee", "knee (R)"; not the 2 L of oxygen, not R/O."""
    word = words[at]
    if word.text not in lists("sides")["letters"] or not word.capital:
        return False
    if at and words[at - 1].text[:1].isdigit() and not word.mark.strip():
        return False
    known = [term for terms in lists("sides")["parts"].values() for term in terms]
    slash = at + 1 < len(words) and "/" in words[at + 1].mark
    ahead = any(start == 0 for start, _ in hits(known, words[at + 1 : at + 4])) and not slash
    behind = "(" in word.mark and any(
        end == at for _, end in hits(known, words[max(at - 3, 0) : at]) for end in [end + max(at - 3, 0)]
    )
    return ahead or behind
