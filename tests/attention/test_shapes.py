"""Shapes that broadcast to one another."""

import pytest
import torch

from foveate.attention.shapes import broadcast


def test_shapes_broadcast_as_torch_has_it() -> None:
    for shapes in (
        [(2, 3)],
        [(2, 3), (2, 3)],
        [(), (5,)],
        [(7, 1, 3), (5, 1)],
        [(1, 0), (4, 1)],
        [(1,), (2, 1), (1, 3)],
    ):
        found = broadcast(*shapes)
        assert isinstance(found, torch.Size)
        assert found == torch.broadcast_shapes(*shapes)
    with pytest.raises(RuntimeError, match=r"\(2, 3\), \(3, 2\) do not broadcast"):
        broadcast((2, 3), (3, 2))
