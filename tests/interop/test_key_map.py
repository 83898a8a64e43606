"""Tables between tensors: transforms by hand, prefixes, tied and ignored tensors."""

import pytest
import torch

from foveate.interop.key_map import Entry, JoinedByHead, JoinedTransposed, KeyMap

QUERIES, KEYS = torch.arange(12.0).view(4, 3), torch.arange(12.0, 24.0).view(4, 3)


def test_names_of_modules_and_tensors() -> None:
    table = KeyMap.of({"block.norm": "h.ln", "table": "wpe.weight"})
    state = {"block.norm.weight": QUERIES, "block.norm.bias": KEYS, "table": KEYS}
    public = table.to_public(state)
    assert list(public) == ["h.ln.weight", "h.ln.bias", "wpe.weight"]
    assert list(table.to_ours(public)) == list(state)
    assert table.renamed(state) == dict(zip(state, public, strict=True))
    with pytest.raises(KeyError):
        table.to_public({"other.weight": QUERIES})


def test_joined_transposed_by_hand() -> None:
    table = KeyMap((Entry(("q", "k"), "attn", JoinedTransposed()),))
    state = {"q.weight": QUERIES, "k.weight": KEYS, "q.bias": QUERIES[:, 0], "k.bias": KEYS[:, 0]}
    public = table.to_public(state)
    assert public["attn.weight"].tolist()[0] == [0, 3, 6, 9, 12, 15, 18, 21]
    assert public["attn.bias"].tolist() == [0, 3, 6, 9, 12, 15, 18, 21]
    back = table.to_ours(public)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], value) for name, value in state.items())


def test_joined_by_head_by_hand() -> None:
    """Two heads of width 2: the queries and keys of head 0, then those of head 1."""
    table = KeyMap((Entry(("q", "k"), "attn", JoinedByHead(2)),))
    public = table.to_public({"q.weight": QUERIES, "k.weight": KEYS})
    assert public["attn.weight"][:, 0].tolist() == [0, 3, 12, 15, 6, 9, 18, 21]
    back = table.to_ours(public)
    assert torch.equal(back["q.weight"], QUERIES)
    assert torch.equal(back["k.weight"], KEYS)


def test_files_without_prefix_and_tied_tensors_and_with_buffers() -> None:
    table = KeyMap(
        (Entry(("embedding",), "body.wte"), Entry(("output",), "head")),
        {"head.weight": "body.wte.weight"},
        ("*.position_ids",),
        "body.",
    )
    for state in ({"wte.weight": QUERIES, "h.position_ids": KEYS}, {"body.wte.weight": QUERIES}):
        found = table.to_ours(state)
        assert list(found) == ["embedding.weight", "output.weight"]
        assert found["output.weight"] is QUERIES
    untied = table.to_ours({"body.wte.weight": QUERIES, "head.weight": KEYS})
    assert untied["output.weight"] is KEYS
