"""Doses, frequencies, dates, and the closed fields that are read by a word list: trial status, allergy severity."""

import re

_NUMBER = r"\d{1,9}(?:,\d{3}){0,3}(?:[.,]\d{1,4})?"
_UNIT = (
    r"(?:micrograms?|milligrams?|grams?|millilit(?:er|re)s?|international units?|"
    r"mcg|mg|µg|μg|ug|ng|kg|g|ml|mmol|meq|units?|iu|puffs?|tab(?:let)?s?|cap(?:sule)?s?|drops?|sprays?|%)"
)
_PER = r"(?:\s?/\s?(?:kg|m2|m²|ml|h|hr|hour|d|day|dose|min)){0,2}"
_COUNTED = (
    r"(?:half|one|two|three|four|five|ten|fifteen|twenty|twenty[\s-]five|thirty|forty|fifty|sixty|eighty|(?:one\s)?hundred)"
    r"\s(?:a\s)?"
    r"(?:tab(?:let)?s?|cap(?:sule)?s?|puffs?|drops?|sprays?|units?|grams?|milligrams?|micrograms?)"
)
DOSE = re.compile(
    rf"(?<![\w.,/-])(?:{_NUMBER}(?:\s?(?:-|–|to|/)\s?{_NUMBER}){{0,2}}[\s-]?{_UNIT}{_PER}(?!\w)|{_COUNTED}\b)",
    re.IGNORECASE,
)

_TIMES = r"(?:up\sto\s|max(?:imum)?\s)?(?:once|twice|thrice|(?:\d{1,2}|one|two|three|four|five|six)(?:\s?x|\stimes?))"
_PERIOD = r"(?:daily|weekly|monthly|nightly|hourly|(?:a|per|each|every|/)\s?(?:day|night|week|month|morning|evening))"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_EVERY = (
    r"(?:every|each)\s(?:(?:other|second|third)\s)?(?:\d{1,2}(?:\s?(?:-|–|to)\s?\d{1,2})?\s?)?"
    r"(?:(?:two|three|four|six|eight|twelve)\s)?(?:hours?|hrs?|h|days?|weeks?|months?|morning|evening|night|day)|"
    rf"every\s{_DAY}|(?:on\s)?alternate\s(?:days|nights)|fortnightly|"
    r"(?:\d{1,2}|two|three|four|six|eight|twelve)[\s-]hourly"
)
_LATIN = (
    r"(?:q\.?\s?\d{1,2}(?:\s?-\s?\d{1,2})?\s?(?:hours?|hrs?|h|d|weeks?|w)|"
    r"(?:qhs|qam|qpm|qod|qds|qid|qd|tid|tds|bid|bd|nocte|mane|q\.d\.|b\.i\.d\.|t\.i\.d\.|q\.i\.d\.|prn)(?:\s[ap]c\b)?)"
)
_MEAL = r"(?:meals?|food|breakfast|lunch|dinner|supper)"
_CLOCK = r"(?:\d{1,2}(?::\d{2})?\s?[ap]m|\d{1,2}:\d{2})"
_WHEN = (
    r"(?:(?:as|when)\s(?:needed|required|directed)"
    r"(?:\sfor\s(?:\w+\s)?(?:pain|nausea|sleep|anxiety|wheez\w+|itch\w*|fever))?|"
    r"at\s(?:bedtime|night|noon)|(?:in\s)?the\s(?:morning|evening)|morning\sand\s(?:night|evening)|"
    rf"(?:before|after|with)\s(?:(?:each|every|the|her|his)\s)?(?:(?:evening|morning|midday|main)\s)?{_MEAL}(?:,\s{_MEAL})*(?:,?\s(?:and|&)\s{_MEAL})?|"
    rf"at\s{_CLOCK}(?:(?:,|\sand|\s&)\s(?:at\s)?{_CLOCK})*|"
    r"on\s(?:mon|tues|wednes|thurs|fri|satur|sun)days)"
)
_SINGLE = r"(?:an?\s)?(?:single|one[\s-]off)\s(?:oral\s)?dose|once\sonly"
_COUNT_A_DAY = r"(?:one|two|three|four|[1-4])\s(?:a|per|each|every)\s(?:day|night|morning|evening|week)"
_ONE = (
    rf"(?:{_EVERY}|{_TIMES}\s?{_PERIOD}?|{_LATIN}|{_WHEN}|{_SINGLE}|{_COUNT_A_DAY}|"
    r"daily|weekly|monthly|nightly|hourly|stat)"
)
FREQUENCY = re.compile(rf"(?<![\w-]){_ONE}(?!\w)(?:,?\s(?:and\s)?{_ONE}(?!\w)){{0,3}}", re.IGNORECASE)
# lower case these are words, but not after a dose
UPPER_FREQUENCY = re.compile(
    rf"(?<![\w-])(?:(?:OD|BD|ON|OM|QDS|HS)(?:\sPRN|,?\s{_WHEN})?|"
    r"(?:(?<=mg )|(?<=mcg )|(?<=mL )|(?<=ml )|(?<=\dg )|(?<=\d g )|(?<=IU )|(?<=units )|(?<=tablet )|(?<=tablets )|"
    r"(?<=puffs )|(?<=PO )|(?<=po ))(?:od|bd|om)"
    rf"(?:\sprn|,?\s{_WHEN})?)(?![\w-])"
)
NEGATED = re.compile(r"\b(?:not|never|instead of|rather than)\s+(?:to be taken\s+|given\s+)?$", re.IGNORECASE)

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]{0,6}\.?"
DATE = re.compile(
    rf"(?<![\w/-])(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.\-]\d{{1,2}}[/.\-]\d{{2,4}}|"
    rf"\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH}\s\d{{4}}|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}})(?![\w/-])",
    re.IGNORECASE,
)

TRIAL_STATUS = {  # word in the question -> ClinicalTrials.gov's overall status
    "recruiting": "recruiting",
    "recruting": "recruiting",
    "recuiting": "recruiting",
    "enrolling": "recruiting",
    "recruit": "recruiting",
    "enroll": "recruiting",
    "open": "recruiting",
    "active": "active",
    "ongoing": "active",
    "current": "active",
    "completed": "completed",
    "finished": "completed",
    "concluded": "completed",
    "terminated": "terminated",
    "withdrawn": "withdrawn",
    "suspended": "suspended",
}
# of a question in lower case without punctuation
NOT_YET = re.compile(
    r"\bnot yet (?:recruiting|enrolling|open)\b|\b(?:yet to|about to|due to|haven t|hasn t|have not|has not)(?: yet)? "
    r"(?:begun|begin|started|start|opened|open)\b"
)
TAKES_PEOPLE = re.compile(
    r"\b(?:taking|accepting|looking for)(?: on)?(?: new| more)? (?:people|patients|participants|volunteers)\b"
)
_ALWAYS_STATUS = frozenset({"recruiting", "recruting", "recuiting", "enrolling"})
_TRIAL = frozenset({"trial", "trials", "study", "studies"})
_NEAR = 8  # words between a status word and the trials it qualifies

SEVERITY = (  # the first that is found, worst first
    ("severe", r"severe(?:ly)?|serious|life[\s-]threatening|anaphyla\w{0,8}|critical"),
    ("moderate", r"moderate(?:ly)?"),
    ("mild", r"mild(?:ly)?|slight(?:ly)?|minor"),
)
_SEVERITY = [
    (value, re.compile(rf"(?<![\w-])(?<!not )(?<!non-)(?<!no )(?:{words})\b", re.IGNORECASE))
    for value, words in SEVERITY
]


def doses(question: str) -> list[str]:
    """Doses as written, "500 mg", "1g", "5-10 mg", "two puffs", blanks normalised."""
    return _found(DOSE, question)


def frequencies(question: str) -> list[str]:
    """How often, as written, with what belongs to it: "q6h prn", "twice daily with meals"."""
    special = _found(UPPER_FREQUENCY, question)
    said = [match for match in FREQUENCY.finditer(question) if not NEGATED.search(question[: match.start()][-40:])]
    plain = [" ".join(match.group().split()) for match in said]
    plain = [item for item in dict.fromkeys(plain) if not any(item in longer for longer in special)]
    return list(dict.fromkeys(plain + special))


def without_amounts(text: str) -> str:
    """The text with each dose and each frequency cut out: where one stood, a clause ends."""
    for said in [*doses(text), *frequencies(text)]:
        text = text.replace(said, ";")
    return text


def dates(question: str) -> list[str]:
    """Dates as written."""
    return _found(DATE, question)


def trial_status(question: str, about_trials: bool = False) -> str | None:
    """The recruitment status asked for, in ClinicalTrials.gov's words (lower case), or None.

    Args:
        question: as asked.
        about_trials: the question is known to be about trials, though it may not say so ("any that are still open?").
    """
    words = re.findall(r"[a-z]+", question.lower())
    if not about_trials and not _TRIAL & set(words):
        return None
    text = " ".join(words)
    if NOT_YET.search(text):
        return "not yet recruiting"
    if "by invitation" in text:
        return "enrolling by invitation"
    if re.search(r"\b(?:not|no longer) (?:recruiting|enrolling)\b", text):
        return "active, not recruiting"
    if TAKES_PEOPLE.search(text):
        return "recruiting"
    trials = [at for at, word in enumerate(words) if word in _TRIAL]
    for at, word in enumerate(words):
        near = about_trials or any(abs(at - other) <= _NEAR for other in trials[:200])
        if word in TRIAL_STATUS and (near or word in _ALWAYS_STATUS):
            return TRIAL_STATUS[word]
    return None


def allergy_severity(question: str) -> str | None:
    """mild, moderate or severe, where the question says so. Anaphylaxis is severe."""
    for value, pattern in _SEVERITY:
        if pattern.search(question):
            return value
    return None


def _found(pattern: re.Pattern, text: str) -> list[str]:
    return list(dict.fromkeys(" ".join(match.group().split()) for match in pattern.finditer(text)))
