"""What counts as the same name: folding, tokens, and how many typing errors a name may hold. No I/O."""

import re
import unicodedata

from docgemma.characters import fold

TITLES = frozenset("""mr mrs ms miss mx dr doctor prof professor sir dame rev jr sr ii iii iv md phd rn esq""".split())
APOSTROPHES = re.compile(r"['’‘`´ʼʻ]")
GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
MAX_EDITS = 2  # in all words of a name together


def name_key(word: str) -> str:
    """One word of a name for comparing: O'Brien is obrien."""
    return APOSTROPHES.sub("", fold(word))


def query_tokens(text: str) -> list[str]:
    """The words of a name as somebody typed it: no titles, no order, no repeats. "Dr. SMITH, John" -> smith, john."""
    words = re.findall(r"\w+", APOSTROPHES.sub("", fold(text)))
    return list(dict.fromkeys([word for word in words if word not in TITLES] or words))


def index_tokens(name: str) -> set[str]:
    """Every word by which this name may be looked for: O'Brien is obrien, o and brien; Smith-Jones also smithjones."""
    folded = fold(name)
    texts = [folded, APOSTROPHES.sub("", folded), re.sub(r"[-‐‑–]", "", folded)]
    if (german := fold(unicodedata.normalize("NFC", name.casefold()).translate(GERMAN))) != folded:
        texts.append(german)
    return {word for text in texts for word in re.findall(r"\w+", text)}


def allowed_edits(token: str, alone: bool) -> int:
    """How many typing errors (a swap of neighbours counts as one) a word may hold and still be a guess, not noise."""
    if len(token) < (4 if alone else 3):
        return 0
    return 1 if len(token) < 8 else MAX_EDITS


def closeness(tokens: list[str], words: set[str]) -> int | None:
    """How near a typed name is to a recorded one: 0 as spelt, 1 its beginnings, 2 or more with typing errors or a word
    too many; None is another name. The rule of search.py, for names that come from a server."""
    from rapidfuzz.distance import OSA

    if words.issuperset(tokens):
        return 0
    if max(map(len, tokens)) >= 3 and all(any(word.startswith(token) for word in words) for token in tokens):
        return 1
    costs = [
        min((OSA.distance(token, word), allowed_edits(token, len(tokens) == 1)) for word in words) for token in tokens
    ]
    if all(edits <= allowed for edits, allowed in costs) and sum(edits for edits, _ in costs) <= MAX_EDITS:
        return 1 + sum(edits for edits, _ in costs)
    spare = [token for token in tokens if token not in words]
    return 2 + MAX_EDITS if len(tokens) >= 3 and len(spare) == 1 else None
