"""Tell whether a question names a policy: names in any word order, codes, and words that tell procedures apart."""

from collections.abc import Sequence
from functools import lru_cache

from docgemma.rcm.records import Policy
from docgemma.rcm.sentences import lists
from docgemma.text.words import plain

SPREAD = 6  # words of the question among which all words of a name stand
SMALL = frozenset(
    "a an the of for to in on at by and or with without my her his their is are be was does do can it".split()
)
SHORT = 4  # letters of a word that keeps its s


@lru_cache(maxsize=2_000)
def words(text: str) -> tuple[str, ...]:
    """The words of a text for comparing: lower case, parts of "L4-L5" by themselves, without a plural s."""
    parts = "".join(" " if char in "-/+" else char for char in plain(text)).split()
    return tuple(
        part[:-1] if len(part) > SHORT and part[-1] == "s" and part[-2] not in "sui" else part for part in parts
    )


def called(policy: Policy) -> list[str]:
    """Every name of a policy's procedures."""
    return [name for one in policy["procedures"] for name in (one["name"], *one["also"])]


def names(asked: tuple[str, ...], policy: Policy) -> int:
    """How many words of the question name the policy: its longest name, 0 if none stands there; a code is sure."""
    if {code.lower() for one in policy["procedures"] for code in one["codes"]} & set(asked):
        return 100
    spelled = map(words, called(policy))
    there = [name for name in spelled if _run(name, asked) or _among([w for w in name if w not in SMALL], asked)]
    return max(map(len, there), default=0)


def _run(name: Sequence[str], asked: tuple[str, ...]) -> bool:
    return any(asked[at : at + len(name)] == name for at in range(len(asked) - len(name) + 1))


def _among(name: Sequence[str], asked: tuple[str, ...]) -> bool:
    """Whether the words of a name of two or more stand close together, in any order."""
    near = (set(asked[at : at + SPREAD]) for at in range(max(1, len(asked) - SPREAD + 1)))
    return len(name) > 1 and any(set(name) <= window for window in near)


def differs(asked: tuple[str, ...], policy: Policy) -> bool:
    """Whether the question names another site, kind or disease than the policy's names do (axes.yaml)."""
    spelled = [words(name) for name in called(policy)]
    axes = lists("policies/axes")
    for values in axes["either"].values():
        said = {value for value, terms in values.items() if any(_run(words(term), asked) for term in terms)}
        held = {
            value for value, terms in values.items() if any(_run(words(t), name) for t in terms for name in spelled)
        }
        if said and held and not said & held:
            return True
    return any(
        any(_run(words(term), asked) for term in terms)
        and not any(_run(words(term), name) for term in terms for name in spelled)
        for terms in axes["only_named"].values()
    )
