"""A memory that grows, is reordered and cut, and attends as if all had been there from the start."""

import pytest
import torch
from torch import Tensor

from foveate.attention import Additive, Biaffine, Memory, ScaledDot, Score, assign_rows, attend, causal

B, H, S, D, V = 3, 2, 7, 5, 11


def scores() -> dict[str, Score]:
    return {"scaled dot": ScaledDot(), "biaffine": Biaffine(D, D), "additive": Additive(D, D, 4)}


def parts() -> tuple[Tensor, Tensor]:
    return torch.randn(B, H, S, D), torch.randn(B, H, S, V)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("score", list(scores()))
def test_append_is_having_had_it_all(score: str, gradients: bool) -> None:
    (k, v), joined = parts(), scores()[score]
    k.requires_grad_(gradients)
    with torch.set_grad_enabled(gradients):
        memory = Memory(k[:, :, :2], v[:, :, :2], joined)
        for start, stop in ((2, 3), (3, 3), (3, 6), (6, 7)):
            memory.append(k[:, :, start:stop], v[:, :, start:stop])
            assert memory.length == stop
            torch.testing.assert_close(memory.keys, joined.keys(k[:, :, :stop]))
            assert torch.equal(memory.values, v[:, :, :stop])
        if gradients:
            outgoing = torch.randn_like(memory.keys)
            ours, theirs = (torch.autograd.grad(one, k, outgoing) for one in (memory.keys, joined.keys(k)))
            torch.testing.assert_close(ours, theirs)


def test_append_changes_nothing_that_was_seen() -> None:
    k, v = parts()
    with torch.no_grad():
        memory = Memory(k[:, :, :3], v[:, :, :3], ScaledDot())
        seen = []
        for place in range(3, S):
            seen.append((memory.keys, memory.keys.clone(), memory.values, memory.values.clone()))
            memory.append(k[:, :, place : place + 1], v[:, :, place : place + 1])
    for keys, copied_keys, values, copied_values in seen:
        assert torch.equal(keys, copied_keys)
        assert torch.equal(values, copied_values)


def test_append_where_gradients_are_kept_leaves_them_right() -> None:
    """Queries learn, keys and values do not: what attention saved of these is not written over."""
    (k, v), q = parts(), torch.randn(B, H, 1, D).requires_grad_()
    with torch.no_grad():
        memory = Memory(k[:, :, :3], v[:, :, :3], ScaledDot())
        memory.append(k[:, :, 3:4], v[:, :, 3:4])
    output = attend(q, memory)
    memory.append(k[:, :, 4:], v[:, :, 4:])
    expected = attend(q, k[:, :, :4], v[:, :, :4])
    ours, theirs = (torch.autograd.grad(one.square().sum(), q) for one in (output, expected))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("rows", [[2, 0, 0], [1], [0, 1, 2, 2, 1]])
def test_reorder_keeps_these_rows(rows: list[int]) -> None:
    k, v = parts()
    with torch.no_grad():
        memory = Memory(k[:, :, :3], v[:, :, :3], ScaledDot())
        memory.append(k[:, :, 3:5], v[:, :, 3:5])
        memory.reorder(torch.tensor(rows))
        memory.append(k[rows, :, 5:], v[rows, :, 5:])
    assert torch.equal(memory.keys, k[rows])
    assert torch.equal(memory.values, v[rows])


@pytest.mark.parametrize("expected", [0, 12, 40])
@pytest.mark.parametrize("gradients", [True, False])
def test_many_turns_of_beams(gradients: bool, expected: int) -> None:
    """Rows stay, move, double, leave and become more again between keys that are added."""
    drawn = torch.Generator().manual_seed(7)
    k, v = parts()
    with torch.set_grad_enabled(gradients):
        memory = Memory(k, v, ScaledDot(), expected)
        for count in (8, 8, 8, 6, 6, 5, 9, 11, 12, 2, 2, 13, 20, 1):
            rows = torch.randint(len(k), (count,), generator=drawn)
            rows = torch.where(torch.rand(count, generator=drawn) < 0.6, torch.arange(count) % len(k), rows)
            memory.reorder(rows)
            new_k, new_v = torch.randn(count, H, 1, D), torch.randn(count, H, 1, V)
            memory.append(new_k, new_v)
            k, v = torch.cat([k[rows], new_k], 2), torch.cat([v[rows], new_v], 2)
            assert torch.equal(memory.keys, k)
            assert torch.equal(memory.values, v)


@pytest.mark.parametrize("gradients", [True, False])
def test_keys_that_lie_across_stay_so(gradients: bool) -> None:
    """As long as none are added: products with few queries read them that way."""
    k, v = parts()
    with torch.set_grad_enabled(gradients):
        memory = Memory(k.mT.contiguous().mT, v, ScaledDot())
        for rows in (torch.tensor([0, 2, 1, 1]), torch.tensor([3, 1, 2]), torch.tensor([1, 0])):
            memory.reorder(rows)
            k, v = k[rows], v[rows]
            assert torch.equal(memory.keys, k)
            assert torch.equal(memory.values, v)
            assert memory.keys.mT.is_contiguous()
            assert memory.values.is_contiguous()
        new_k, new_v = torch.randn(2, H, 1, D), torch.randn(2, H, 1, V)
        memory.append(new_k, new_v)
    assert torch.equal(memory.keys, torch.cat([k, new_k], 2))
    assert torch.equal(memory.values, torch.cat([v, new_v], 2))


def test_beams_change_places_before_there_is_a_key() -> None:
    with torch.no_grad():
        memory = Memory(torch.randn(2, H, 0, D), torch.randn(2, H, 0, V), ScaledDot())
        for rows in ([0, 0, 1, 1], [1, 0, 2, 3], [3, 0]):
            memory.reorder(torch.tensor(rows))
        k, v = torch.randn(2, H, 1, D), torch.randn(2, H, 1, V)
        memory.append(k, v)
    assert torch.equal(memory.keys, k)
    assert torch.equal(memory.values, v)


@pytest.mark.parametrize("seed", range(5))
def test_rows_settle_where_they_are(seed: int) -> None:
    drawn = torch.Generator().manual_seed(seed)
    kept = int(torch.randint(1, 20, (), generator=drawn))
    rows = torch.randperm(20, generator=drawn)[:kept]
    rows = torch.cat([rows, rows[: kept // 2]])[torch.randperm(kept + kept // 2, generator=drawn)]
    places = assign_rows(rows)
    assert sorted(places.tolist()) == list(range(len(rows)))
    below = {row for row in rows.tolist() if row < len(rows)}
    stay = {row for row, place in zip(rows.tolist(), places.tolist(), strict=True) if row == place}
    assert stay == below or 2 * len(below) < len(rows)


def test_rows_that_are_doubled_lie_side_by_side() -> None:
    assert assign_rows(torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])).tolist() == list(range(9))
    assert assign_rows(torch.tensor([3])).tolist() == [0]


def test_what_a_caller_gave_is_not_written_into() -> None:
    given = torch.randn(4, H, S, D)
    kept = given.clone()
    with torch.no_grad():
        memory = Memory(given, given, ScaledDot())
        for rows in (torch.tensor([0, 3, 2, 2]), torch.tensor([2, 1, 0])):
            memory.reorder(rows)
    assert torch.equal(given, kept)
    assert torch.equal(memory.keys, kept[[2, 3, 0]])
    assert torch.equal(memory.values, kept[[2, 3, 0]])


def test_without_a_batch_there_are_no_rows() -> None:
    memory = Memory(torch.randn(S, D), torch.randn(S, V), ScaledDot())
    with pytest.raises(ValueError, match=r"^a memory of keys \(7, 5\) has no batch whose rows could be reordered$"):
        memory.reorder(torch.tensor([0]))


@pytest.mark.parametrize("gradients", [True, False])
def test_crop_forgets_the_end(gradients: bool) -> None:
    (k, v), (other_k, other_v) = parts(), parts()
    with torch.set_grad_enabled(gradients):
        memory = Memory(k[:, :, :5], v[:, :, :5], ScaledDot())
        memory.append(k[:, :, 5:], v[:, :, 5:])
        seen, copied = memory.keys, memory.keys.clone()
        memory.crop(4)
        assert memory.length == 4
        assert torch.equal(memory.keys, k[:, :, :4])
        memory.append(other_k[:, :, :2], other_v[:, :, :2])
    assert torch.equal(memory.keys, torch.cat([k[:, :, :4], other_k[:, :, :2]], 2))
    assert torch.equal(memory.values, torch.cat([v[:, :, :4], other_v[:, :, :2]], 2))
    # What was seen before is not written over.
    assert torch.equal(seen, copied)


def test_crop_that_reuses_its_room() -> None:
    """What nobody reads any more is written over, without a copy of the rest; to drop nothing does nothing."""
    (k, v), (other_k, other_v) = parts(), parts()
    with torch.no_grad():
        memory = Memory(k[:, :, :5], v[:, :, :5], ScaledDot())
        memory.append(k[:, :, 5:6], v[:, :, 5:6])
        place = memory.keys.data_ptr()
        memory.crop(6)
        memory.append(k[:, :, 6:], v[:, :, 6:])
        memory.crop(4, reuse=True)
        memory.append(other_k[:, :, :2], other_v[:, :, :2])
    assert memory.keys.data_ptr() == place
    assert torch.equal(memory.keys, torch.cat([k[:, :, :4], other_k[:, :, :2]], 2))
    assert torch.equal(memory.values, torch.cat([v[:, :, :4], other_v[:, :, :2]], 2))


@pytest.mark.parametrize("length", [-1, S + 1])
def test_crop_to_what_is_not_there(length: int) -> None:
    memory = Memory(*parts(), ScaledDot())
    with pytest.raises(ValueError, match=f"^cannot crop a memory of 7 keys to {length}$"):
        memory.crop(length)
    assert memory.length == S


@pytest.mark.usefixtures("unchecked")
def test_each_key_needs_a_value() -> None:
    k, v = parts()
    text = r"^1 keys \(3, 2, 1, 5\) but 2 values \(3, 2, 2, 11\): each key needs a value$"
    memory = Memory(k, v, ScaledDot())
    with pytest.raises(ValueError, match=text):
        memory.append(k[:, :, :1], v[:, :, :2])
    assert memory.length == S


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("score", list(scores()))
def test_step_by_step_is_causal_attention(score: str, gradients: bool) -> None:
    (k, v), q, joined = parts(), torch.randn(B, H, S, D), scores()[score]
    with torch.set_grad_enabled(gradients):
        memory, steps = Memory(k[:, :, :0], v[:, :, :0], joined), []
        for place in range(S):
            memory.append(k[:, :, place : place + 1], v[:, :, place : place + 1])
            steps.append(attend(q[:, :, place : place + 1], memory))
        torch.testing.assert_close(torch.cat(steps, 2), attend(q, k, v, score=joined, mask=causal()))


def test_a_later_chunk_is_causal_from_where_it_starts() -> None:
    (k, v), q = parts(), torch.randn(B, H, S, D)
    whole = attend(q, k, v, mask=causal())
    torch.testing.assert_close(attend(q[:, :, 4:], Memory(k, v, ScaledDot()), mask=causal(4)), whole[:, :, 4:])


def test_a_repeated_memory_grows_alone():
    keys, values = torch.randn(1, 2, 3, 5), torch.randn(1, 2, 3, 7)
    memory = Memory(keys, values, ScaledDot())
    with torch.no_grad():
        many = memory.repeated(4)
        more = torch.randn(4, 2, 2, 5), torch.randn(4, 2, 2, 7)
        many.append(*more)
    assert memory.length == 3
    assert torch.equal(memory.keys, keys)
    assert torch.equal(many.keys, torch.cat([keys.expand(4, -1, -1, -1), more[0]], -2))
    assert torch.equal(many.values, torch.cat([values.expand(4, -1, -1, -1), more[1]], -2))
    with pytest.raises(ValueError, match="only a memory of one row can be repeated, not one of 4"):
        many.repeated(2)
