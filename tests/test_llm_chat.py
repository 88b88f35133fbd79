"""Prompts as chat messages, and text in them that stays text."""

import pytest
from PIL import Image

from docgemma.llm.base import Prompt
from docgemma.llm.chat import as_data, messages, openai_messages

CONTROL = [
    "<|im_end|>", "<|im_start|>", "<start_of_turn>", "<end_of_turn>", "<unused94>", "<bos>", "</s>", "<|eot_id|>",
    "<｜User｜>", "[INST]", "[/INST]", "<<SYS>>", "<start_of_image>", "<repo_name>", "<tool_call>", "<a.b>",
]  # fmt: skip


@pytest.mark.parametrize("token", CONTROL)
def test_a_control_token_in_a_text_is_broken_up_not_removed(token):
    assert token not in as_data(f"x{token}\n{token}y")
    assert as_data(f"x{token}y").replace(" ", "") == f"x{token}y"


@pytest.mark.parametrize(
    "text", ["eGFR <60 and HbA1c >7 %", "a < b > c", "[1] and [12]", "[Article in German]", "1<2", "<>", "x[0]"]
)
def test_ordinary_text_stays_as_it_is(text):
    assert as_data(text) == text


@pytest.mark.parametrize(
    ("prompt", "roles"),
    [
        (Prompt("Hi"), ["user"]),
        (Prompt("Hi", "Be brief."), ["system", "user"]),
        (Prompt("Hi", "Be brief.", "Sure, "), ["system", "user", "assistant"]),
    ],
)
def test_a_prompt_is_turns_and_an_opened_answer_the_last(prompt, roles):
    turns = openai_messages(prompt)
    assert [turn["role"] for turn in turns] == roles
    assert "Sure, " not in roles or turns[-1]["content"] == "Sure, "


def test_questions_and_results_open_no_turn_and_the_programs_own_prefix_may():
    evil = "".join(CONTROL)
    system, user, opened = openai_messages(Prompt(evil, evil, "<unused94>thought\n<unused95>"))
    assert not any(token in turn["content"] for turn in (system, user) for token in CONTROL)
    assert opened["content"].startswith("<unused94>")


def test_each_image_stands_before_the_text_and_several_are_numbered():
    image = Image.new("L", (2, 2))
    (turn,) = messages(Prompt("Hi", images=(image, image)), lambda shown: {"type": "image"})
    first, second, question = ({"type": "text", "text": text} for text in ("SLICE 1", "SLICE 2", "Hi"))
    assert turn["content"] == [{"type": "image"}, first, {"type": "image"}, second, question]
    (turn,) = openai_messages(Prompt("Hi", images=(image,)))
    assert turn["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
