"""Keys that come back at every step are kept once, and never misread."""

import pytest
import torch
from torch import Tensor, nn

from foveate.sight.key_store import KeyStore, collapse, copy_tensor, keep_tensor

B, H, D = 3, 2, 5


def keys(count: int, batch: int = B) -> Tensor:
    return torch.randn(batch, H, count, D)


def test_a_cache_that_grows() -> None:
    """Each call has the keys of its time, and none is kept twice."""
    cache = keys(7)
    kept = KeyStore(cache)
    spans, expected = [kept.full_span], [cache]
    for _ in range(11):
        cache = torch.cat([cache, keys(1)], -2)
        spans.append(kept.extend(cache, 1))
        expected.append(cache)
    for span, then in zip(spans, expected, strict=True):
        assert torch.equal(kept.read(span), then)
    assert kept.grows
    assert kept._store.numel() <= 2 * cache.numel()


def test_several_steps_at_once() -> None:
    cache = keys(7)
    kept = KeyStore(cache)
    cache = torch.cat([cache, keys(4)], -2)
    span = kept.extend(cache, 4)
    assert (span.first, span.length) == (0, 11)
    assert torch.equal(kept.read(span), cache)


def test_a_cache_that_is_overwritten_in_place() -> None:
    """What a call looked at stays, whatever the model does with its memory."""
    cache = torch.zeros(B, H, 13, D)
    cache[:, :, :7] = keys(7)
    kept = KeyStore(cache[:, :, :7])
    spans, expected = [kept.full_span], [cache[:, :, :7].clone()]
    for place in range(7, 13):
        cache[:, :, place] = keys(1)[:, :, 0]
        spans.append(kept.extend(cache[:, :, : place + 1], 1))
        expected.append(cache[:, :, : place + 1].clone())
    cache.zero_()
    for span, then in zip(spans, expected, strict=True):
        assert torch.equal(kept.read(span), then)


def test_a_cache_that_forgets() -> None:
    """A window of the last 6 keys: places are counted from the first key that there ever was."""
    cache = keys(4)
    kept = KeyStore(cache)
    firsts = []
    for _ in range(6):
        cache = torch.cat([cache, keys(1)], -2)[:, :, -6:]
        span = kept.extend(cache, 1)
        firsts.append(span.first)
        assert torch.equal(kept.read(span), cache)
    assert firsts == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(5))
def test_beams_that_change_places(seed: int) -> None:
    """Every step's keys in the rows of its time, though a row later belongs to another beam, or to two, or to none."""
    torch.manual_seed(seed)
    cache = keys(1).expand(B, H, 1, D) if seed else keys(3)
    kept = KeyStore(cache)
    spans, expected = [kept.full_span], [cache]
    for step in range(9):
        if step % 3 != 1:
            cache = cache[torch.randint(B, (B,))]
        cache = torch.cat([cache, keys(1)], -2)
        spans.append(kept.extend(cache, 1))
        expected.append(cache)
    for span, then in zip(spans, expected, strict=True):
        assert torch.equal(kept.read(span), then)
    stored = kept._store.numel() + sum(turn.keys.numel() for turn in kept._reorders)
    assert stored <= 3 * cache.numel()


def test_a_source_that_every_step_looks_at() -> None:
    source = keys(7)
    kept = KeyStore(source)
    for _ in range(3):
        span = kept.extend(source.clone(), 1)
        assert (span.first, span.length) == (0, 7)
    assert not kept.grows
    assert kept.extend(source, 4) is None
    assert kept.extend(source, 4, generating=True) is not None


def test_what_continues_nothing() -> None:
    cache = keys(7)
    kept = KeyStore(cache)
    changed = cache.clone()
    changed[1, 0, 3, 2] += 1
    for other, steps in (
        (keys(8), 1),  # other keys
        (torch.cat([changed, keys(1)], -2), 1),  # a key among them was changed
        (changed, 1),
        (torch.cat([cache, keys(2)], -2), 1),  # more keys than queries
        (cache, 7),  # the same text once more
        (keys(9), 9),
        (torch.cat([cache, keys(1)], -2)[:2], 1),  # fewer examples
        (torch.cat([cache, keys(1)], -2).bfloat16(), 1),
    ):
        assert kept.extend(other, steps) is None
    assert torch.equal(kept.read(kept.full_span), cache)


def test_keys_without_a_batch() -> None:
    cache = torch.randn(7, D)
    kept = KeyStore(cache)
    longer = torch.cat([cache, torch.randn(1, D)])
    assert torch.equal(kept.read(kept.extend(longer, 1)), longer)
    assert kept.extend(torch.randn(9, D), 1) is None


def test_a_copy_is_as_small_as_can_be() -> None:
    shared = torch.randn(B, 1, 7, D).expand(B, H, 7, D)
    assert copy_tensor(shared).shape == (B, 1, 7, D)
    joint = torch.randn(B, 7, 3 * D, requires_grad=True)
    part = copy_tensor(joint[..., D : 2 * D])
    assert part.untyped_storage().nbytes() == 4 * B * 7 * D
    assert not part.requires_grad
    assert collapse(torch.randn(1, 7, D).expand(4, 7, D)).shape == (1, 7, D)


def test_a_span_says_where_it_is() -> None:
    kept = KeyStore(keys(7))
    assert (kept.full_span.first, kept.full_span.length, kept.full_span.reorders) == (0, 7, 0)


def test_keys_of_a_source_may_be_reordered_from_step_to_step() -> None:
    """Beams have the same source, of which a processor makes rows that differ in their last bits."""
    source = torch.randn(1, 2, 7, 4).expand(3, -1, -1, -1) + torch.arange(3.0)[:, None, None, None] * 1e-6
    keys = KeyStore(source)
    spans = [keys.extend(source[order], steps=1) for order in ([0, 1, 2], [2, 0, 0], [1, 1, 0])]
    orders = [[0, 1, 2], [2, 0, 0]]
    for order, span in zip(orders, spans, strict=False):
        assert torch.equal(keys.read(span), source[order])
    assert spans[2] is None, "row 1 was lost a step before"
    assert keys.extend(source[[0, 2, 2]], steps=1) is not None
    assert torch.equal(keys.read(spans[0]), source)


def test_what_nobody_else_holds_is_not_copied() -> None:
    project = nn.Linear(6, 8)
    with torch.inference_mode():
        keys = project(torch.randn(2, 5, 6)).unflatten(-1, (2, 4)).transpose(1, 2)
        assert keep_tensor(keys, True).data_ptr() == keys.data_ptr()
        assert keep_tensor(keys, False).data_ptr() != keys.data_ptr()


@pytest.mark.parametrize("held", ["view", "joint", "repeated", "parameter", "gradient"])
def test_what_others_hold_is_copied(held: str) -> None:
    project = nn.Linear(6, 8)
    with torch.inference_mode(held != "gradient"):
        whole = project(torch.randn(2, 5, 6))
        tensor = {
            "view": lambda: whole[:],
            "joint": lambda: project(torch.randn(2, 5, 6))[..., :4],
            "repeated": lambda: project(torch.randn(1, 5, 6)).expand(2, -1, -1),
            "parameter": lambda: project.weight[:],
            "gradient": lambda: whole.tanh(),
        }[held]()
        assert keep_tensor(tensor, True).data_ptr() != tensor.data_ptr()
