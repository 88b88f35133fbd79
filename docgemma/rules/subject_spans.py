"""What trials or literature may be looked for, as a question says it. Pure."""

import re

from docgemma.rules.name_words import EPONYMS
from docgemma.rules.phrases import EDGE_WORDS, phrases

WORDS = 12  # of a span, at most
# "…, and are trials recruiting": another request begins
REQUEST_NEXT = re.compile(
    r",?\s+(?:and|plus|then|also)\s+(?=(?:then\s+|also\s+)?(?:are|is|does|do|any|whether|what|whatever|which|check|find|look|"
    r"show|see|tell|list|search|get|pull|review|prescribe|order|save|document|record|give|send|let|need|want|i|we|my|"
    r"papers?|articles?|literature|pubmed|grab|there|it|they|he|she|evidence|trials?|recruiting|"
    r"the\s+(?:black|boxed|fda|safety|warnings?|interactions?|chart|trials?))\b)",
    re.IGNORECASE,
)
# "…, if you would not mind", "…, since 2018": no part of what is looked for
AFTERTHOUGHT = re.compile(
    r",\s*(?=(?:if|whatever|whichever|ideally|preferably|somewhere|anywhere|from|since|so|they|he|she|we|i|you|my|our|"
    r"his|her|not (?!otherwise)|but|only|just|tell|last|past|recent|need|needed|wanted|want|parents?|family|published|"
    r"kindly|please|pls|see|find|search|show|can|could|what|clinical trials?|(?:19|20)\d\d|"
    r"the (?:\w+ )?ones|(?:it|that|there)['’]s)\b)|"
    r"\s(?=(?:from|on|in) (?:pubmed|medline|the literature|the journals)\b)|,\s*(?=journal)|"
    r"\s(?=(?:since|before|after|from) (?:19|20)\d\d\b)|\s(?=(?:i|we|he|she|they|you)['’](?:re|m|s|ve|d|ll)\b)|"
    r"\s[-–—]\s(?=(?:what|any|anything|can|could|please|is|are|do|does|have|has|find|show)\b)|"
    r"\s/\s(?=(?:active|recruiting|completed|open|terminated|any)\b)|\s\d\)\s|\bfull stop\b",
    re.IGNORECASE,
)
ABOUT_TRIALS = re.compile(
    r"\b(?:trials?|stud(?:y|ies)|recr\w*ing|recuit\w*|enrolling|ongoing|completed|phase|any|still|that|are|been|"
    r"yet|moment|now|currently|please|today|join|could|near|my|should|has|have|"
    r"was|were|is|would|wants?|like|terminated|withdrawn|suspended)\b",
    re.IGNORECASE,
)
# where trials are, as a capital says: "in Leeds", "near Salt Lake City", "within reach of Bristol"
PLACE = re.compile(
    r"\s(?:[Ss]omewhere |[Aa]nywhere )?(?:in|near|around|round|at|outside|across|within (?:easy )?reach of|close to)\s+"
    r"(?:the |or near |or around )?(?:(?:[Nn]orth|[Ss]outh|[Ee]ast|[Ww]est)(?:ern)?\s+)?"
    r"((?:[A-Z][^\W\d_]*[a-zà-ÿ][’'-]?[^\W\d_]*|U[KS]A?|EU)(?:[\s-](?:[A-Z][^\W\d_]+|upon|under|on|the|of|de)(?=[\s-][A-Z]|\b))*)"
    r"(?=\s*(?:$|[,.;:?!)]|\b(?:for|that|which|with|on|and|or|please|pls|recruiting|enrolling|open|right|now|today)\b))"
)
COMMA_PLACE = re.compile(r",\s*[A-Z][a-z]+(?:\s+(?:or|and)\s+[A-Z][a-z]+)+(?=\s*(?:[.?!;,]|$))")  # ", Leeds or York"
LAST_PLACE = re.compile(r",\s*(?:the\s+)?[A-Z][a-zà-ÿ]{3,}\s*[.?!]*$")  # ", Netherlands"
# "trials there are for HFpEF"
TRIALS_FOR = re.compile(
    r"\b(?:trials?|recruiting|enrolling)\b[^.;?!]*?\b(?:for|in|of|on|into|with)\s+([^.;?!]+)", re.IGNORECASE
)
PERSON = (
    r"lady|gentleman|man|woman|chap|bloke|guy|girl|boy|lad|kid|pt|patients?|neighbou?r|mum|mom|mother|dad|father|wife|"
    r"husband|son|daughter|friend|brother|sister|colleague|clinic"
)
PERSON_END = re.compile(rf"\b(?:{PERSON})$", re.IGNORECASE)
OWNED = re.compile(rf"(?:{PERSON})['’]s\s", re.IGNORECASE)  # "her boy's asthma"
# words that stand beside a condition and are no part of it
PARTS = re.compile(
    rf"(?:{PERSON})(?:'s)?|regarding|concerning|studying|treating|having|"
    r"diagnosed|newly|searching|seeking|testing|against|involving|including|targeting|investigating|pubmed|nct|listings?|"
    r"options?|open|active|begun|full",
    re.IGNORECASE,
)
AT_PRESENT = re.compile(r"\b(?:right now|just now|at present|these days|this (?:year|month|week))\b", re.IGNORECASE)


def conditions(text: str) -> list[str]:
    """What trials may be looked for: the longest spans first, without places and without what is said beside them."""
    return _spans(_without_places(text)) or _spans(text)


def queries(text: str) -> list[str]:
    """What literature may be looked for, the longest spans first; the whole text where it has none."""
    return phrases(_subject(text), WORDS, across_commas=True, owners=True) or [text]


def _spans(text: str) -> list[str]:
    text = AT_PRESENT.sub(";", _subject(LAST_PLACE.sub(";", COMMA_PLACE.sub(";", text))))
    spans = [span for span in phrases(text, WORDS, across_commas=True, owners=True) if _is_condition(span)]
    spans = [span for span in spans if _whole(span, text)] or spans
    led_to = " ".join(match[1] for match in TRIALS_FOR.finditer(text))
    return [span for span in spans if span in led_to] or spans


def _is_condition(span: str) -> bool:
    return not (ABOUT_TRIALS.search(span) or PERSON_END.search(span) or OWNED.match(span))


def _whole(span: str, text: str) -> bool:
    """Whether a span is cut where a small word, a mark or the end is: "lung cancer", not "cell lung cancer"."""
    before, after = text[: (at := text.find(span))], text[at + len(span) :]
    left, right = re.search(r"\S+(?=\s+$)", before), re.match(r"\s+(\S+)", after)
    return (not left or _parts(left[0], left[0][-1])) and (not right or _parts(right[1], right[1][0]))


def _parts(word: str, nearest: str) -> bool:
    """Whether a neighbouring word, or the mark on its near side, ends what stands beside it."""
    plain = word.casefold().replace("’", "'").strip(".,;:!?()'-\"“”")
    return not nearest.isalnum() or plain in EDGE_WORDS or bool(PARTS.fullmatch(plain) or ABOUT_TRIALS.search(plain))


def _without_places(text: str) -> str:
    """Without where the trials should be; a person's name may be a disease's: "in Parkinson"."""
    return PLACE.sub(lambda found: found.group() if found[1].casefold() in EPONYMS else ";", text)


def _subject(text: str) -> str:
    """Without what is only said beside it."""
    return AFTERTHOUGHT.sub("; ", REQUEST_NEXT.sub("; ", text))
