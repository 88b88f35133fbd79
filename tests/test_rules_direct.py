"""What code answers without a look-up: manners, curated definitions, refusals; never a made-up fact."""

import json

import pytest

from docgemma.paths import data_file
from docgemma.rules.direct import definitions, direct_reply
from tests.rules_help import request

TERMS = [json.loads(line) for line in data_file("edge", "definitions.jsonl").read_text("utf-8").splitlines()]


def test_every_curated_term_and_alias_is_found_and_has_a_reference() -> None:
    for entry in TERMS:
        assert entry["text"] and entry["reference"]
        for name in (entry["term"], *entry["aliases"]):
            assert any(found["term"] for found in definitions(f"What is {name}?")), name


@pytest.mark.parametrize(
    "question", ["what is hypertension", "Hypertension?", "define hypertension please", "so what's hypertension"]
)
def test_a_definition_gives_its_reference(question: str) -> None:
    reply = direct_reply(request("gk", said=question), question.removeprefix("so "))
    assert reply.settled and "blood pressure" in reply.text and "Source:" in reply.text and reply.sources


@pytest.mark.parametrize(
    "question",
    ["what is the first line treatment of hypertension", "is hypertension dangerous in pregnancy", "what is", "",
     "hypertension in john smith"],
)  # fmt: skip
def test_a_question_that_asks_more_than_a_definition_is_not_answered_by_one(question: str) -> None:
    assert definitions(question) == []


def test_what_the_offline_sources_do_not_hold_is_said_and_listed() -> None:
    reply = direct_reply(request("gk"), "why does the sky look blue at noon")
    assert not reply.settled and reply.unanswered and "cannot answer" in reply.text


@pytest.mark.parametrize(
    ("asks", "given", "word"),
    [(["change"], {}, "cannot remove"), (["rx"], {"meant": "refused"}, "No entry"), (["ok"], {}, "No entry is waiting"),
     (["cancel"], {}, "No entry is waiting"), (["img"], {}, "No image"), (["oos"], {}, "cannot do that"),
     (["find"], {}, "Which patient")],
)  # fmt: skip
def test_each_of_these_is_settled_by_code(asks: list[str], given: dict, word: str) -> None:
    reply = direct_reply(request(*asks, **given), "some words")
    assert reply.settled and word in reply.text


def test_a_greeting_is_greeted_and_thanks_are_taken() -> None:
    assert direct_reply(request("chat"), "hi there").text != direct_reply(request("chat"), "thank you").text


@pytest.mark.parametrize(
    ("said", "asks", "starts"),
    [
        ("ok thx ur a lifesaver, 5 more visits", [], "You're welcome"),
        ("4am and my tea is cold, u even get tired", ["chat"], "I hear you. I found no question"),
        ("remind me what you can and cant do", ["chat"], "I can look up patients' charts"),
        ("bleep the med reg for bed 4 now", ["oos"], "I cannot call, book, page"),
        ("will it rain in leeds", ["oos"], "I cannot do that."),
        ("remind me at 6 to ring the lab", ["oos"], "I cannot set reminders or alerts: that was not done."),
        ("70F, face droop, arm weak, 40 mins", ["chat"], "I make no diagnosis from what you describe"),
    ],
)
def test_small_talk_and_a_deed_get_a_reply_of_their_own(said: str, asks: list[str], starts: str) -> None:
    assert direct_reply(request(*asks, said=said), said).text.startswith(starts)
