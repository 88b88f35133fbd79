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
    mine, theirs = parts(one), parts(other)
    return bool(mine & theirs or _regions(mine) & theirs or _regions(theirs) & mine)


def _regions(named: frozenset[str]) -> set[str]:
    """The coarser parts that those which are named so finely belong to."""
    fine, data = {term for name in named for term in lists("sides")["finer"].get(name, ())}, lists("sides")["parts"]
    return {region for region, terms in data.items() if fine & set(terms)}


def _letter(words: Sequence[Word], at: int) -> bool:
    """A capital L or R next to a part of the body, or before a dash: "L knee", "knee (R)", "X-ray: R - bone on bone";
    not the 2 L of oxygen, not R/O."""
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
    first = at == 0 or word.mark.strip()[-1:] in (":", ".", ";")
    return ahead or behind or (first and at + 1 < len(words) and words[at + 1].mark.strip() in ("-", "–", ":"))
