"""A note's text as a message corrects it: a word, a value or a side in the place of another, or what is added."""

from docgemma.text.words import listed, plain

SIDES = ("left", "right")
QUOTES = "\"'“”‘’"


def reworded(text: str, said: str) -> str:
    """A note's text with one word in the place of another, "sats were 90 not 91", or the side, "it's the LEFT foot"."""
    edges, parts = ",.;:!?", text.split(" ")
    if more := added(said):
        return f"{text.rstrip('. ')}. {more}"
    quoted = said.translate(dict.fromkeys(map(ord, "'“”‘’"), '"')).split('"')
    if len(quoted) > 4 and quoted[1] and text.count(quoted[1]) == 1:  # "change 'this week' to 'until afebrile'"
        return text.replace(quoted[1], quoted[3])
    for side, other in (SIDES, SIDES[::-1]):
        wrong = [at for at, part in enumerate(parts) if part.strip(edges).casefold() in (other, other[0])]
        if side in plain(said).split() and other not in plain(said).split() and len(wrong) == 1:
            old = parts[wrong[0]].strip(edges)
            new = side if len(old) > 1 else side[0]
            parts[wrong[0]] = parts[wrong[0]].replace(old, new.upper() if old.isupper() else new)
            return " ".join(parts)
    words = [word.strip(edges) for word in said.replace("instead of", "not").split()]
    told, held = ([word for word in some if word[:1].isdigit()] for some in (words, [p.strip(edges) for p in parts]))
    if len(told) == len(held) == 1 and ("/" in told[0]) == ("/" in held[0]):  # "its 158/94, put that one in instead"
        return text.replace(held[0], told[0])
    for new, denial, old in zip(words, words[1:], words[2:], strict=False):
        places = [at for at, part in enumerate(parts) if part.strip(edges) == old]
        if denial == "not" and len(places) == 1:
            parts[places[0]] = parts[places[0]].replace(old, new)
    return " ".join(parts)


def added(said: str) -> str:
    """What a message adds to a note, "add: no bladder symptoms", "add “walked to the bay” to that note", or ""."""
    first, _, more = said.partition(" ")
    while plain(first) in listed("request_words", "opening"):
        first, _, more = more.partition(" ")
    more = more.strip(" ,.:;") if plain(first) in listed("request_words", "appending") else ""
    for phrase in sorted(listed("request_words", "to_the_note"), key=len, reverse=True):
        if f"{more.casefold()}:".startswith((f"{phrase}:", f"{phrase} ", f"{phrase},")):
            return more[len(phrase) :].strip(f" ,:;{QUOTES}")
        if more.casefold().endswith(f" {phrase}"):
            return more[: -len(phrase)].strip(f" ,:;{QUOTES}")
    return more
