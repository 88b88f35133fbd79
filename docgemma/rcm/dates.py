"""Find the dates that a sentence gives: a day, a month, a season, "01/2026". Pure."""

import re
from datetime import date

from docgemma.rcm.sentences import Sentence, lists
from docgemma.text.births import read_births

YEAR = 365  # days
FIRST_YEAR = 1950  # of a bare year
MONTH_YEAR = re.compile(r"(?<![\d/.])(0?[1-9]|1[0-2])/((?:19|20)\d\d)(?![\d/])")  # "01/2026"


def dates(sentence: Sentence, today: date) -> list[tuple[int, int, date]]:
    """The dates in a sentence as words `start` to `end`, those to come too; "March 2026" is its first day."""
    words, found = sentence.words, list[tuple[int, int, date]]()
    for one in read_births(sentence.read or sentence.text, date(today.year + 5, 12, 31)):
        inside = [at for at, word in enumerate(words) if one.start <= word.start < one.end]
        if inside and one.kind in ("date", "stated") and len(one.days[-1]) == len("2026-01-01"):
            found.append((inside[0], inside[-1] + 1, date.fromisoformat(one.days[-1])))
    months = [month[:3] for month in lists("units")["months"]]
    names = {*lists("units")["months"], *months, "sept"}
    for at in range(len(words) - 1):
        year, month = words[at + 1].text, words[at].text
        if month in lists("units")["seasons"]:  # "spring 2024", "spring of 2024"
            behind = at + 2 if year == "of" else at + 1
            if behind < len(words) and words[behind].text.isdigit() and len(words[behind].text) == len("2026"):
                day = date(int(words[behind].text), lists("units")["seasons"][month], 1)
                found.append((at - (words[at - 1].text == "the"), behind + 1, day))
        behind = at + 1 + (words[at + 1].text == "of")
        year = words[behind].text if behind < len(words) else ""
        known = month in names and len(year) == len("2026") and year.isdigit()
        if known and not any(start <= at < end for start, end, _ in found):
            found.append((at, behind + 1, date(int(year), months.index(month[:3]) + 1, 1)))
    for said in MONTH_YEAR.finditer(sentence.read or sentence.text):
        inside = [at for at, word in enumerate(words) if said.start() <= word.start < said.end()]
        found.append((inside[0], inside[-1] + 1, date(int(said[2]), int(said[1]), 1)))
    return sorted(found)


def long_ago(sentence: Sentence, today: date) -> bool:
    """Whether a sentence dates itself, and more than a year back: "BMI was 41 at the 5/2023 visit"."""
    years = [int(word.text) for word in sentence.words if word.text.isdigit() and len(word.text) == len("2026")]
    last = [day for _, _, day in dates(sentence, today)]
    last += [date(year, 12, 31) for year in years if FIRST_YEAR <= year <= today.year]
    return bool(last) and (today - max(last)).days > YEAR
