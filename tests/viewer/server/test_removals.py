"""Heads and weights that a look does without: for the browser that removes them, for one look."""

import numpy as np
import pytest
import torch
from served_model import HEADS, Client, FakeViewer, Serve

from foveate.sight import Knock, Scale, change
from foveate.viewer.protocol import ContinuedText

TEXT = "one two three four five"


def looked(client: Client, removed: object = None) -> str:
    """The address of a look at the text, perhaps without some heads, once it has ended."""
    body = {"text": TEXT} if removed is None else {"text": TEXT, "removed": removed}
    begun = client("POST", "/looks", body)
    assert begun.status == 202, begun.json
    address = f"/looks/{begun.json['id']}"
    client.wait(address)
    return address


def maps(client: Client, address: str, site: int) -> np.ndarray:
    return np.frombuffer(client.get(f"{address}/maps/{site}").body, "<f4")


def test_a_removed_head_changes_what_comes_after_it(served: Serve) -> None:
    client = served()
    whole, without = looked(client), looked(client, [["layers.0", 1]])
    assert np.array_equal(maps(client, whole, 0), maps(client, without, 0))
    assert not np.allclose(maps(client, whole, 1), maps(client, without, 1), atol=1e-3)
    viewer = FakeViewer()
    with change(viewer.model, {"layers.0": Scale(0.0, 1)}):
        right = viewer.look(TEXT, 99).sight["layers.1"].weights()[0]
    found = client.viewer.seen[TEXT].sight["layers.1"].weights()[0]
    assert torch.allclose(found, right, atol=1e-6)


def test_a_removed_weight(served: Serve) -> None:
    """Of one pair in one head: the other keys of the query share it, and what comes after changes."""
    client = served()
    pairs = [["layers.0", 1, 3, 2], ["layers.0", 1, 4, 0], ["layers.1", 2]]
    address = looked(client, pairs)
    assert client.get(address).status == 200, client.get(address).json
    found = client.viewer.seen[TEXT].sight
    before = FakeViewer().look(TEXT, 99).sight["layers.0"].weights()
    right = before.clone()
    for row, key in ((3, 2), (4, 0)):
        right[:, 1, row, key] = 0
        right[:, 1, row] /= right[:, 1, row].sum(-1, keepdim=True)
    assert torch.allclose(found["layers.0"].weights(), right, atol=1e-6)
    viewer = FakeViewer()
    changes = {"layers.0": [Knock(1, queries=3, keys=2), Knock(1, queries=4, keys=0)], "layers.1": Scale(0.0, 2)}
    with change(viewer.model, changes):
        after = viewer.look(TEXT, 99).sight["layers.1"].weights()
    assert torch.allclose(found["layers.1"].weights(), after, atol=1e-6)


def test_no_other_browser_sees_it(served: Serve) -> None:
    """Also not after a look that failed."""
    client = served()
    other = client.browser()
    whole = maps(other, looked(other), 1)
    for removed in (
        [["layers.0", head] for head in range(HEADS)],
        [["layers.0", 99]],
        [["layers.9", 0]],
        [["layers.0", 0, 1, 99]],
    ):
        looked(client.browser(), removed)
        assert np.array_equal(maps(other, looked(other), 1), whole)


def test_what_cannot_be_removed(served: Serve) -> None:
    client = served()
    answer = client.get(looked(client, [["layers.0", 7]]))
    assert (answer.status, answer.json["message"]) == (422, "layers.0 has 3 heads, 0 to 2: there is no head 7")
    answer = client.get(looked(client, [["layers.*", 0]]))
    assert answer.status == 422, "a site, not a pattern"
    assert "no module that attends has a path like" in answer.json["message"]
    del client.viewer.model
    assert client.get(looked(client, [["layers.0", 0]])).json["message"].endswith("cannot be removed")


@pytest.mark.parametrize(
    "removed",
    [
        *(5, "layers.0", [5], {"layers.0": 1}, [["layers.0", 0]] * 4097, [["layers.0"]], [[0, 0]], [["", 0]]),
        *([["x" * 501, 0]], [["layers.0", "1"]], [["layers.0", -1]], [["layers.0", True]], [["layers.0", 2**16]]),
        *([["layers.0", 0, 1]], [["layers.0", 0, 1, -1]], [["layers.0", 0, 1, 1.5]], [["layers.0", 0, 1, 1, 1]]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_another_request_is_refused(served: Serve, removed: object) -> None:
    answer = served()("POST", "/looks", {"text": TEXT, "removed": removed})
    assert answer.status == 400
    told = "lists of a site, a head, and perhaps a query and a key"
    assert answer.json == {"message": f"removed must be at most 4096 {told}"}


def test_many_weights(served: Serve) -> None:
    """Each is counted once, and there is a bound."""
    client = served()
    assert client.get(looked(client, [["layers.0", 1, 3, 2]] * 4096)).status == 200
    answer = client("POST", "/looks", {"text": TEXT, "removed": [["layers.0", 1, 3, key] for key in range(65)]})
    assert (answer.status, answer.json) == (400, {"message": "at most 64 single weights can be removed at once"})


def test_a_text_that_is_written_is_not_changed(served: Serve) -> None:
    """The change is closed before anything else is asked of the model."""
    client = served()
    client.viewer.chats = False  # type: ignore[attr-defined]
    client.viewer.write = lambda text, count, chat: ContinuedText(text, True)  # type: ignore[attr-defined]
    hooks = lambda: [len(module._forward_pre_hooks) for module in client.viewer.model.modules()]  # noqa: E731
    before = hooks()
    looked(client, [["layers.1", 0]])
    assert hooks() == before
