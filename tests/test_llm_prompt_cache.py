"""Key values kept between prompts: what is found is what was computed for those tokens, within its bound of bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from transformers import DynamicCache  # noqa: E402

from docgemma.llm.prompt_cache import PromptCache, common_length  # noqa: E402

TOKEN_BYTES = 2 * 2 * 4  # two layers of one key and one value of four bytes

prompts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=12)


def grow(cache: DynamicCache, tokens: list[int]) -> DynamicCache:
    """Two layers whose keys are the tokens themselves, and whose values are their negatives."""
    keys = torch.tensor(tokens, dtype=torch.float32).reshape(1, 1, -1, 1)
    cache.update(keys, -keys, 0)
    cache.update(keys + 100, -keys - 100, 1)
    return cache


def add(kept: PromptCache, tokens: list[int]) -> None:
    """As a generation does it: from the known beginning on, and with an answer behind the prompt."""
    length, cache = kept.find(tokens[:-1])
    kept.add(tokens, grow(cache, [*tokens[length:], 9]))
    grow(cache, [9, 9])


def tokens_of(cache: DynamicCache) -> list[int]:
    if not cache.layers:
        return []
    assert torch.equal(cache.layers[1].values, -100 - cache.layers[0].keys)
    return [int(value) for value in cache.layers[0].keys.reshape(-1)]


@given(prompts)
def test_what_is_found_is_a_beginning_with_its_own_key_values(stored: list[list[int]]) -> None:
    kept = PromptCache(10**6)
    for tokens in stored:
        add(kept, tokens)
    for wanted in [[0, 1, 2, 0, 1, 2, 0, 1], *stored]:
        length, cache = kept.find(wanted)
        assert tokens_of(cache) == wanted[:length]
    assert kept.find(stored[-1])[0] == len(stored[-1])


@given(prompts, st.integers(0, 12))
def test_the_bound_holds_and_what_is_left_is_still_right(stored: list[list[int]], limit_tokens: int) -> None:
    kept = PromptCache(limit_tokens * TOKEN_BYTES)
    for tokens in stored:
        add(kept, tokens)
        assert kept.nbytes <= kept.limit_bytes
        length, cache = kept.find(tokens)
        assert tokens_of(cache) == tokens[:length]


def test_prompts_that_share_half_of_their_tokens_are_kept_once_and_others_beside_them() -> None:
    kept = PromptCache(10**6)
    add(kept, [1, 2, 3, 4])
    add(kept, [7, 8, 9])
    add(kept, [1, 2, 3, 5, 6])
    assert kept.nbytes == (3 + 5) * TOKEN_BYTES
    assert kept.find([7, 8, 9, 1])[0] == 3


def test_a_beginning_that_many_share_outlives_the_single_prompts() -> None:
    kept = PromptCache(8 * TOKEN_BYTES)
    for last in range(20):
        add(kept, [1, 2, 3, 4, 5, 100 + last])
    assert kept.find([1, 2, 3, 4, 5, 999])[0] == 5


def test_the_prompt_used_longest_ago_goes_first() -> None:
    kept = PromptCache(6 * TOKEN_BYTES)
    add(kept, [1, 2, 3])
    add(kept, [4, 5, 6])
    kept.find([1, 2, 3])
    add(kept, [7, 8, 9])
    assert [kept.find([first, first + 1, first + 2])[0] for first in (1, 4, 7)] == [3, 0, 3]


def test_a_prompt_larger_than_the_bound_is_not_kept() -> None:
    kept = PromptCache(3 * TOKEN_BYTES)
    add(kept, [1, 2, 3, 4])
    assert (kept.nbytes, kept.find([1, 2, 3, 4])[0]) == (0, 0)


def test_common_lengths() -> None:
    assert [common_length([1, 2, 3], other) for other in ([], [1], [1, 2, 3, 4], [2, 2, 3])] == [0, 1, 3, 0]
