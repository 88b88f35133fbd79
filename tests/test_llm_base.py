"""What is the same on every back end: thinking spans, the one retry with a larger budget, the records of calls."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel

from docgemma.errors import MalformedOutputError, NoVisionError, OutOfTokensError
from docgemma.llm.base import GenConfig, Prompt, ThinkingFilter, strip_thinking
from docgemma.schemas import ToolSelection
from tests.scripted import ScriptedLLM

ANSWER = '{"tool_name":"search_patient"}'


@pytest.mark.parametrize(
    ("raw", "visible"),
    [
        ("<unused94>thought\nI see\n<unused95>Hello.", "Hello."),
        ("Hello <unused94>hm<unused95>there.", "Hello there."),
        ("Hello.<unused95>", "Hello."),
        ("<unused94>a<unused95>b<unused94>c<unused95>d", "bd"),
        ("<unused9 is text", "<unused9 is text"),
        ("", ""),
    ],
)
def test_a_thinking_span_is_never_seen(raw, visible):
    assert strip_thinking(raw) == visible
    llm, pieces = ScriptedLLM().enqueue("synthesize", raw), []
    made = llm.text(Prompt("q"), GenConfig(), node="synthesize", on_token=pieces.append)
    assert made.value == visible
    assert "".join(pieces) == visible


@pytest.mark.parametrize(
    ("raw", "begun"),
    [("<unused94>thinking until the budget ended", ""), ("Hello. <unused94>hm<unused95>So <unused94>x", "Hello. So ")],
)
def test_an_unclosed_thinking_span_does_not_cost_the_answer(raw, begun):
    llm, pieces = ScriptedLLM().enqueue("synthesize", raw, truncated=True).enqueue("synthesize", "It is safe."), []
    made = llm.text(Prompt("q", prefix="Well: "), GenConfig(), node="synthesize", on_token=pieces.append)
    assert made.value == "".join(pieces) == begun + "It is safe."
    assert [call.truncated for call in made.calls] == [True, False]
    assert llm.history[1][1].prefix == f"Well: {begun}<unused94>thought\n<unused95>"  # told that it has thought


def test_a_span_that_stays_open_twice_is_an_empty_answer_and_not_tried_again():
    llm = ScriptedLLM().enqueue("synthesize", "<unused94>hm").enqueue("synthesize", "<unused94>hm")
    assert llm.text(Prompt("q"), GenConfig(), node="synthesize").value == ""
    assert llm.nodes() == ["synthesize"] * 2


@given(
    st.lists(st.sampled_from(["<unused94>", "<unused95>", "<unused9", "4>", "<", "a", "\n", "unused95>"]), max_size=12),
    st.lists(st.integers(1, 9), min_size=1, max_size=40),
)
def test_streamed_text_is_the_text_without_thinking_however_it_is_cut(parts, cuts):
    text, seen, at = "".join(parts), [], 0
    visible = ThinkingFilter(seen.append)
    for size in cuts * (len(text) // len(cuts) + 1):
        visible(text[at : at + size])
        at += size
    visible.flush()
    assert "".join(seen) == strip_thinking(text)


def test_a_schema_is_parsed_after_its_thinking_span():
    llm = ScriptedLLM().enqueue("tool_select", f"<unused94>which?<unused95>{ANSWER}")
    assert (
        llm.structured(Prompt("q"), ToolSelection, GenConfig(), node="tool_select").value.tool_name == "search_patient"
    )


def test_where_a_schema_leaves_no_choice_nothing_is_generated_and_no_call_counted():
    class Settled(BaseModel):
        quality: Literal["success_rich"]

    made = ScriptedLLM().structured(Prompt("q"), Settled, GenConfig(), node="assess")
    assert made.value.quality == "success_rich" and made.calls == []


def test_a_cut_answer_is_tried_once_more_with_four_times_the_budget():
    llm = ScriptedLLM().enqueue("tool_select", '{"tool_na', truncated=True).enqueue("tool_select", ANSWER)
    made = llm.structured(Prompt("q"), ToolSelection, GenConfig(max_tokens=16), node="tool_select")
    assert made.value.tool_name == "search_patient"
    assert [config.max_tokens for config in llm.configs] == [16, 64]
    assert [call.truncated for call in made.calls] == [True, False]  # both generations are on record


def test_an_answer_cut_twice_is_a_typed_error():
    llm = ScriptedLLM().enqueue("tool_select", '{"tool', truncated=True).enqueue("tool_select", '{"to', truncated=True)
    with pytest.raises(OutOfTokensError) as caught:
        llm.structured(Prompt("q"), ToolSelection, GenConfig(), node="tool_select")
    assert caught.value.hint
    assert not llm.pending()


@pytest.mark.parametrize("raw", ["", "{", '{"tool_name":"none"}', '{"tool_name":"search_patient","x":1}', "<unused94>"])
def test_a_finished_answer_that_is_not_the_schema_is_malformed_and_not_retried(raw):
    llm = ScriptedLLM().enqueue("tool_select", raw)
    with pytest.raises(MalformedOutputError):
        llm.structured(Prompt("q"), ToolSelection, GenConfig(), node="tool_select")
    assert llm.nodes() == ["tool_select"]


def test_an_image_for_a_model_without_vision_is_refused_before_it_is_asked():
    llm = ScriptedLLM().enqueue("analyze", "a chest")
    with pytest.raises(NoVisionError):
        llm.text(Prompt("q", images=(Image.new("L", (4, 4)),)), GenConfig(), node="analyze")
    assert llm.history == []


def test_what_a_listener_raises_ends_the_generation():
    llm = ScriptedLLM().enqueue("synthesize", "a long answer")

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        llm.text(Prompt("q"), GenConfig(), node="synthesize", on_token=stop)


def test_a_script_without_an_answer_fails_loudly():
    with pytest.raises(AssertionError, match="nothing enqueued for synthesize"):
        ScriptedLLM().text(Prompt("q"), GenConfig(), node="synthesize")
