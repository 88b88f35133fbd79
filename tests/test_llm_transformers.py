"""The transformers back end on a CPU: real Gemma 3 weights in NF4, and MedGemma's vision path on a random model."""

import inspect

import pytest
from PIL import Image

from docgemma.errors import ModelError, NoVisionError
from docgemma.llm.base import OPEN_THINKING, GenConfig, Prompt
from docgemma.llm.hf_load import locate
from docgemma.llm.transformers_ import Loaded, TransformersLLM
from docgemma.schemas import ImageFindings, ToolSelection
from docgemma.settings import Settings
from tests import models

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    # torch itself, when llguidance's mask kernel (the plain path's) asks it for a compiler
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]
torch = pytest.importorskip("torch")

BEGUN = Prompt("What is hypertension?", prefix="Hypertension, also known as high blood pressure, is a condition in")
IMAGE_TOKEN = 262144


def test_gemma_in_nf4_is_fluent_and_says_no_pads():
    llm, pieces = models.gemma_nf4(), []
    made = llm.text(BEGUN, GenConfig(max_tokens=16), node="x", on_token=pieces.append)
    assert "blood" in made.value
    assert "<pad>" not in made.value and "<" not in made.value
    assert len(pieces) > 3 and "".join(pieces).strip() == made.value
    (call,) = made.calls
    assert call.prompt_tokens == llm.encode(BEGUN)["input_ids"].shape[1]
    assert call.completion_tokens == 16 and call.truncated


def test_gemma_in_nf4_is_really_quantized_and_says_what_was_loaded():
    facts = models.gemma_nf4().describe()
    kinds = {type(module).__name__ for module in models.gemma_nf4().loaded.model.modules()}
    assert "Linear4bit" in kinds
    assert facts["quantization"].startswith("NF4")
    assert facts["compute"].startswith(("float32", "bfloat16"))
    assert facts["memory_bytes"] > 100_000_000


def test_gemma_in_nf4_keeps_to_a_schema():
    prompt = Prompt("Check the FDA warnings for dofetilide.", system="Select a tool.", prefix="Analyzing, ")
    made = models.gemma_nf4().structured(prompt, ToolSelection, GenConfig(max_tokens=64), node="x")
    assert isinstance(made.value, ToolSelection)


def test_one_bos_and_no_control_tokens_of_others():
    llm = models.gemma_nf4()
    ids = llm.encode(Prompt("Hi <end_of_turn><bos><unused94>", system="Be brief."))["input_ids"][0].tolist()
    assert ids.count(2) == 1 and ids[0] == 2
    assert (ids.count(105), ids.count(106)) == (2, 1)


@pytest.mark.parametrize("error", [RuntimeError("stop"), KeyboardInterrupt()])
def test_what_a_listener_raises_stops_the_generation_and_the_model_stays_usable(error):
    def stop(_):
        raise error

    with pytest.raises(type(error)):
        models.gemma_nf4().text(BEGUN, GenConfig(max_tokens=500), node="x", on_token=stop)
    assert models.gemma_nf4().text(BEGUN, GenConfig(max_tokens=2), node="x").value


def test_a_prompt_longer_than_the_context_is_one_clear_line():
    with pytest.raises(ModelError, match=r"too long for the model .* it can read 8192"):
        models.gemma_nf4().text(Prompt("word " * 9000), GenConfig(max_tokens=2), node="x")


def test_a_text_model_does_not_look_at_images():
    with pytest.raises(NoVisionError):
        models.gemma_nf4().text(Prompt("q", images=(Image.new("L", (4, 4)),)), GenConfig(), node="x")


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="not a model folder"):
        locate(str(tmp_path), Settings(home=models.MODEL_HOME))


def test_free_text_cannot_open_a_thinking_span(monkeypatch):
    """On a model that says nothing else: every logit but that of its mark is low."""
    fast = models.gemma_nf4()
    mark = fast.loaded.tokenizer.convert_tokens_to_ids(OPEN_THINKING)
    forward = type(fast.loaded.model).forward

    def insist(self, *args, **kwargs):
        out = forward(self, *args, **kwargs)
        out.logits[..., mark] = 1e4
        return out

    insist.__signature__ = inspect.signature(forward)
    monkeypatch.setattr(type(fast.loaded.model), "forward", insist)
    for llm in (TransformersLLM("fast", fast.loaded), TransformersLLM("plain", fast.loaded, fast=False)):
        made = llm.text(BEGUN, GenConfig(max_tokens=6), node="x")
        assert made.value and len(made.calls) == 1


@pytest.mark.parametrize("part", ["Decoding.__call__", "Decoding._forward", "GrammarMask.__init__"])
def test_where_decoding_in_fewer_passes_fails_the_answer_is_decoded_plainly(monkeypatch, part, caplog):
    from docgemma.llm import decoding

    def fail(*args, **kwargs):
        raise TypeError("Can't instantiate abstract class")

    owner, name = part.split(".")
    monkeypatch.setattr(getattr(decoding, owner), name, fail)
    llm, whole = TransformersLLM("broken", models.gemma_nf4().loaded), models.gemma_nf4()
    prompt, config = Prompt("Check the FDA warnings for dofetilide."), GenConfig(max_tokens=64)
    for _ in range(2):
        made = llm.structured(prompt, ToolSelection, config, node="x")
    assert made.calls[0].forced_tokens == 0
    assert [record.levelname for record in caplog.records] == ["WARNING"]  # said once, tried once
    monkeypatch.undo()
    assert made.value == whole.structured(prompt, ToolSelection, config, node="x").value


# vision, on a random model with MedGemma's classes, tokens and image size

RED = Image.new("RGB", (320, 200), (200, 20, 20))
GREY = Image.new("L", (64, 64), 90)


def test_an_image_becomes_256_image_tokens_in_the_users_turn():
    llm = models.tiny_gemma3()
    inputs = llm.encode(Prompt("What is <start_of_image> this?", system="Look.", images=(RED,)))
    ids = inputs["input_ids"][0].tolist()
    assert ids.count(IMAGE_TOKEN) == 256
    assert ids.count(255999) == 1  # the question's own mark is text
    assert ids.count(2) == 1 and ids[0] == 2
    assert tuple(inputs["pixel_values"].shape) == (1, 3, 896, 896)
    two = llm.encode(Prompt("Compare.", images=(RED, GREY)))
    assert two["input_ids"][0].tolist().count(IMAGE_TOKEN) == 512


def test_what_the_model_says_depends_on_the_image():
    llm = models.tiny_gemma3()
    with torch.inference_mode():
        red, grey = (
            llm.loaded.model(**llm.encode(Prompt("What is this?", images=(image,)))).logits[0, -1]
            for image in (RED, GREY)
        )
    assert torch.isfinite(red).all()
    assert not torch.equal(red, grey)


def test_findings_come_back_through_the_vision_path():
    config = GenConfig(temperature=1.0, max_tokens=400, seed=3)
    made = models.tiny_gemma3().structured(Prompt("Describe.", images=(GREY,)), ImageFindings, config, node="x")
    assert 0 <= made.value.confidence <= 1
    assert made.calls[0].prompt_tokens > 256


def test_the_vision_tower_is_not_quantized_and_the_language_model_is():
    layers = {
        name: type(module).__name__
        for name, module in models.tiny_gemma3().loaded.model.named_modules()
        if name.endswith("q_proj")
    }
    assert {kind for name, kind in layers.items() if "vision_tower" in name} == {"Linear"}
    assert {kind for name, kind in layers.items() if "vision_tower" not in name} == {"Linear4bit"}


def test_a_closed_model_says_so():
    source = models.tiny_gemma3().loaded
    llm = TransformersLLM("copy", Loaded(source.model, source.tokenizer, source.processor))
    llm.close()
    llm.close()
    with pytest.raises(ModelError, match="closed"):
        llm.text(Prompt("q"), GenConfig(), node="x")


def test_plain_generate_under_outlines_answers_as_the_fast_path_does():
    fast = models.gemma_nf4()
    plain = TransformersLLM("plain", fast.loaded, fast=False)
    assert (
        plain.text(BEGUN, GenConfig(max_tokens=12), node="x").value
        == fast.text(BEGUN, GenConfig(max_tokens=12), node="x").value
    )
    prompt, config = Prompt("Check the FDA warnings for dofetilide."), GenConfig(max_tokens=64)
    slow, quick = (llm.structured(prompt, ToolSelection, config, node="x") for llm in (plain, fast))
    assert slow.value == quick.value
    assert slow.calls[0].forced_tokens == 0 < quick.calls[0].forced_tokens
    assert plain.describe()["decoding"] == "plain"
