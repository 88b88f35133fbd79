"""Which criteria of a trial, as it lists them in short, a chart speaks to: age, sex, the condition. Eligibility is not
judged. Pure."""

from collections.abc import Iterator
from datetime import date
from typing import Any

from docgemma.rules.patient_state import PatientState, patient_state
from docgemma.text.words import clinical, names, plain

OLDEST = 130
BROAD = ("cancer", "bowel disease")  # kinds of which one is not the other


def spoken_to(trial: dict[str, Any], chart: dict[str, Any], today: date) -> str:
    """ "DEMO-TRIAL-017 beside the chart: age 40 or older, the patient is 31: does not fit; Heart failure, ..."."""
    state = patient_state(chart, today)
    told = "; ".join([*_age(trial, state), *_sex(trial, state), _condition(trial, state)])
    return f"{trial['id']} beside the chart: {told}."


def _age(trial: dict[str, Any], state: PatientState) -> Iterator[str]:
    said = plain(f"{trial['title']} {trial['summary']}").split()
    groups = [span for name, span in clinical("request_words")["trial_ages"].items() if name in said]
    if "aged" in said:
        numbers = [int(word) for word in said[said.index("aged") :] if word.isdecimal()][:2]
        groups = [[numbers[0], numbers[-1] if len(numbers) > 1 else OLDEST]] if numbers else groups
    low, high = min((span[0] for span in groups), default=0), max((span[1] for span in groups), default=OLDEST)
    if [low, high] == [0, OLDEST]:
        return
    listed = f"{low} or older" if high == OLDEST else f"{low} to {high}"
    if state.age is None:
        yield f"age {listed}, the patient's is not recorded"
    else:
        yield f"age {listed}, the patient is {int(state.age)}: {_fits(low <= state.age < high + 1)}"


def _sex(trial: dict[str, Any], state: PatientState) -> Iterator[str]:
    said = plain(f"{trial['title']} {trial['summary']}").split()
    listed = {sex: word for word, sex in clinical("request_words")["trial_sexes"].items() if word in said}
    if len(listed) == 1 and state.sex:
        yield f"{''.join(listed.values())} only, the patient is {state.sex}: {_fits(state.sex in listed)}"


def _condition(trial: dict[str, Any], state: PatientState) -> str:
    """The condition, and the active problem of that name or kind."""
    kinds = [item["chart"] for item in clinical("problems")["problems"] if item["name"] not in BROAD]
    for condition in trial["conditions"]:
        alike = [kind for kind in kinds if names(kind, condition)]
        for problem in state.problems:
            named = names([plain(condition)], problem) or any(names(kind, problem) for kind in alike)
            if named and not _opposed(condition, problem):
                return f"{condition}, on the chart as {problem}"
    return f"{', '.join(trial['conditions'])}, no active problem has this name"


def _opposed(condition: str, problem: str) -> bool:
    """Whether one is of the opposite kind: "preserved" and "reduced"; "acute on chronic" is of both."""
    kinds = clinical("request_words")["trial_opposites"]
    told = [[[names(words, text) for words in pair] for text in (condition, problem)] for pair in kinds]
    return any(mine != theirs and sum(mine) == sum(theirs) == 1 for mine, theirs in told)


def _fits(met: bool) -> str:
    return "within" if met else "does not fit"
