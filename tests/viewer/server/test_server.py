"""What the server gives to its page, and what it keeps at most; who may ask is in test_guards.py."""

import base64
import os
import random
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

import explorer_load
from demo_pages import points_sight
from served_model import HEADS, Client, FakeViewer, Serve

from foveate.errors import UserError
from foveate.viewer.document import NEGLIGIBLE
from foveate.viewer.protocol import ContinuedText, File, LookResult
from foveate.viewer.server import Address, tiles
from foveate.viewer.server.serving import listen

WORDS = ["a", "page", "holds", "</script><script>alert(1)</script>", "&", "'quotes'", '"\x00"', "<!--", "🙂"]


def text(count: int) -> str:
    return " ".join(WORDS[place % len(WORDS)] for place in range(count))


@pytest.fixture
def client(served: Serve) -> Client:
    return served()


def test_half_a_character_does_no_harm(client: Client) -> None:
    answer = client("POST", "/looks", b'{"text": "a \\ud800 b"}')
    assert client.wait(f"/looks/{answer.json['id']}").json["title"] == "a ? b"


def test_half_a_character_in_a_name_is_told_as_one_line(served: Serve) -> None:
    client = served("image")

    def fail(given: Any) -> None:
        raise UserError(f"{given.name} is not a picture")

    client.viewer.before = fail
    answer = client("POST", "/looks", b'{"name": "a\\ud800\\nb", "data": ""}')
    answer = client.wait(f"/looks/{answer.json['id']}")
    assert (answer.status, answer.json) == (422, {"message": r"a?\nb is not a picture"})


def test_nothing_that_is_looked_at_is_written_anywhere(client: Client) -> None:
    """No file is opened to be written, made, moved or removed while an input is looked at and zoomed into."""
    watching, written = True, []

    def watch(event: str, arguments: tuple) -> None:
        if watching and event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            written.append(arguments[0])
        elif watching and event in ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "tempfile.mkstemp"):
            written.append((event, *arguments))

    sys.addaudithook(watch)
    address = client.look(text(23))
    assert client.wait(address).status == 200
    for part in ("maps/0", "rows/0/1?rows=0,9", "tile/1/0?rows=0,9&columns=3,7&size=4,4"):
        assert client.get(f"{address}/{part}").status == 200
    assert written == []
    open(os.devnull, "w").close()
    watching = False
    assert written == [os.devnull]


def test_too_many_tokens_are_told(served: Serve) -> None:
    client = served(tokens=11)
    answer = client.wait(client.look(text(12)))
    assert answer.status == 422
    assert answer.json == {"message": "the text has 12 tokens, but at most 11 are looked at"}
    assert client.wait(client.look(text(11))).status == 200


def test_a_model_that_fails_is_told_and_the_next_input_is_looked_at(client: Client) -> None:
    def fail(given: Any) -> None:
        if given == "bad":
            raise RuntimeError("out of memory\nat great length")

    client.viewer.before = fail
    answer = client.wait(client.look("bad"))
    assert (answer.status, answer.json) == (422, {"message": "the model failed: RuntimeError: out of memory"})
    assert client.wait(client.look("good")).status == 200


def test_the_head_holds_all_but_numbers(client: Client) -> None:
    answer = client.get(client.look(text(23)))
    assert answer.headers["content-type"] == "application/json"
    head = answer.json
    assert head["title"] == text(23)[:100]
    *sites, rollout = head["sites"]
    assert [site["name"] for site in sites] == ["layers.0", "layers.1"]
    assert (rollout["name"], rollout["rollout"], rollout["heads"]) == ("rollout of layers.*", True, 1)
    for site in sites:
        assert site["heads"] == HEADS
        assert site["kept"] == 23
        assert site["entropy"] == [None] * HEADS
        assert head["sides"][site["queries"]]["labels"] == text(23).split()


def test_a_rollout_has_numbers_too(client: Client) -> None:
    address = client.look(text(71))
    whole = client.viewer.seen[text(71)].sight.rollout()[0]
    numbers = np.frombuffer(client.get(f"{address}/tile/2/0?rows=9,20&columns=3,8&size=11,5").body, np.float32)
    assert np.allclose(numbers.reshape(11, 5), whole[9:20, 3:8], atol=1e-6)
    maps = np.frombuffer(client.get(f"{address}/maps/2").body, np.float32)
    assert np.allclose(maps[0], -torch.xlogy(whole, whole).sum(-1).mean(), rtol=1e-5)


def test_numbers_are_those_of_the_sight(client: Client) -> None:
    """71 tokens: small maps of 64 cells, of which some have two places."""
    address = client.look(text(71))
    site = client.viewer.seen[text(71)].sight["layers.1"]
    weights = site.weights()[0]
    numbers = np.frombuffer(client.get(f"{address}/maps/1").body, np.float32)
    assert torch.equal(torch.from_numpy(numbers[:HEADS].copy()), site.entropy()[0].mean(-1)) or np.allclose(
        numbers[:HEADS], site.entropy()[0].mean(-1), rtol=1e-5
    )
    assert np.allclose(numbers[HEADS:].reshape(HEADS, 64, 64), site.pooled(64, 64)[0], atol=1e-6)
    rows = client.get(f"{address}/rows/1/2?rows=60,67").body
    keys, values = np.frombuffer(rows[: 7 * 71 * 4], np.int32), np.frombuffer(rows[7 * 71 * 4 :], np.float32)
    known = np.zeros((7, 72), np.float32)
    known[np.arange(7)[:, None], keys.reshape(7, 71)] = values[: 7 * 71].reshape(7, 71)
    assert np.array_equal(known[:, :71], weights[2, 60:67] * (weights[2, 60:67] >= NEGLIGIBLE))
    assert values.shape == (7 * 71 + 7,)
    assert np.allclose(values[7 * 71 :], 0, atol=1e-6), "nothing is left out"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("maps/3", 422, "there is no site 3 among 3"),
        ("rows/0/3?rows=0,5", 422, "there is no head 3 among 3"),
        ("rows/0/0?rows=5,24", 422, "there are no queries 5 to 24 among 23"),
        ("rows/0/0?rows=5,5", 422, "there are no queries 5 to 5 among 23"),
        ("rows/0/0?rows=-1,5", 400, "'rows' must be two numbers, such as rows=0,64"),
        ("rows/0/0?rows=1e3,5", 400, "'rows' must be two numbers, such as rows=0,64"),
        ("rows/0/0", 400, "'rows' must be two numbers, such as rows=0,64"),
        ("tile/0/0?rows=0,5&columns=0,24&size=5,5", 422, "there are no positions 0 to 24 among 23"),
        ("tile/0/0?rows=7,5&columns=0,23&size=5,5", 422, "there are no positions 7 to 5 among 23"),
        ("tile/0/0?rows=0,5&columns=0,5&size=0,5", 422, "a map has 1 to 512 rows and columns, not 0 and 5"),
        ("tile/0/0?rows=0,5&columns=0,5&size=5,513", 422, "a map has 1 to 512 rows and columns, not 5 and 513"),
    ],
)
def test_a_part_that_is_none(client: Client, path: str, status: int, message: str) -> None:
    answer = client.get(f"{client.look(text(23))}/{path}")
    assert (answer.status, answer.json) == (status, {"message": message})


def test_the_last_few_inputs_are_kept(served: Serve) -> None:
    client = served(sights=2)
    first, second, third = (client.look(text(count)) for count in (5, 7, 11))
    assert client.get(first).status == client.get(f"{first}/maps/0").status == 404
    assert client.get(first).json == {"message": "this result is no longer kept: submit the input again"}
    assert client.get(second).status == client.get(third).status == 200


def test_each_browser_keeps_its_looks(served: Serve) -> None:
    """Those of one with many do not cost others theirs, until there are too many browsers."""
    client = served(sights=2, browsers=3)
    browsers = [client.browser() for _ in range(4)]
    own = browsers[0].look(text(5))
    many = [browsers[1].look(text(count)) for count in (7, 8, 9, 10)]
    other = browsers[2].look(text(6))
    statuses = [client.get(address).status for address in (*many, own, other)]
    assert statuses == [404, 404, 200, 200, 200, 200]
    last = browsers[3].look(text(5))
    assert [client.get(address).status for address in (*many, own, other, last)] == [404] * 4 + [200] * 3


def test_a_browser_is_known_by_a_cookie(client: Client) -> None:
    first = client.get("/").headers["set-cookie"]
    assert first.startswith(f"foveate-{client.port}=")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in first.split(";")}
    assert client.get("/").headers["set-cookie"] != first
    assert "set-cookie" not in client.get("/", cookie=first.partition(";")[0]).headers


@pytest.fixture
def held(client: Client) -> Iterator[Callable[[], None]]:
    """The model is held in its first look until this is called."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(given: Any) -> None:
        begun.set()
        assert go_on.wait(30)

    client.viewer.before = hold
    client("POST", "/looks", {"text": "first"})
    assert begun.wait(30)
    yield go_on.set
    go_on.set()


def leave(client: Client, address: str, seconds: float = 0.2) -> None:
    """Ask for something, close the connection before the answer comes, and let the server see that."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode())
        time.sleep(seconds)
    time.sleep(0.3)


def test_a_look_whose_client_leaves_while_it_waits_is_not_begun(client: Client, held: Callable[[], None]) -> None:
    names = [client("POST", "/looks", {"text": given}).json["id"] for given in ("left", "wanted")]
    leave(client, f"/looks/{names[0]}")
    held()
    assert client.wait(f"/looks/{names[1]}").status == 200
    assert client.viewer.seen.keys() == {"first", "wanted"}
    assert client.get(f"/looks/{names[0]}").json["message"].startswith("this result is no longer kept")


def test_a_look_whose_client_leaves_stops_the_model(client: Client, capfd: pytest.CaptureFixture) -> None:
    """Before its next module; a look for which another client waits goes on."""
    begun, ended = threading.Event(), []

    def hold(given: Any) -> None:
        begun.set()
        time.sleep(0.5)

    client.viewer.before = hold
    client.viewer.model.register_forward_hook(lambda *_: ended.append(1))
    name = client("POST", "/looks", {"text": "left"}).json["id"]
    assert begun.wait(30)
    leave(client, f"/looks/{name}")
    assert client.wait(client.look("wanted")).status == 200
    assert client.get(f"/looks/{name}").status == 404
    assert len(ended) == 1
    name = client("POST", "/looks", {"text": "shared"}).json["id"]
    waiting = threading.Thread(target=leave, args=(client, f"/looks/{name}", 1))
    waiting.start()
    leave(client, f"/looks/{name}")
    assert client.wait(f"/looks/{name}").status == 200
    waiting.join()
    assert "Traceback" not in capfd.readouterr().err


def test_a_look_that_nobody_asks_for_is_not_begun(
    client: Client, held: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foveate.viewer.server.jobs.LEASE_SECONDS", 0.2)
    forgotten = client("POST", "/looks", {"text": "forgotten"}).json["id"]
    time.sleep(0.3)
    last = client("POST", "/looks", {"text": "wanted"}).json["id"]
    held()
    assert client.wait(f"/looks/{last}").status == 200
    assert client.get(f"/looks/{forgotten}").status == 404
    assert "forgotten" not in client.viewer.seen


def test_numbers_whose_client_leaves_are_not_computed(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    address, computed, go_on = client.look(text(23)), [], threading.Event()
    compute = tiles.compute_tile

    def hold(*arguments: Any) -> Any:
        computed.append(arguments[1])
        assert go_on.wait(30)
        return compute(*arguments)

    monkeypatch.setattr(tiles, "compute_tile", hold)
    for head in (0, 1):
        leave(client, f"{address}/tile/0/{head}?rows=0,9&columns=0,9&size=9,9")
    go_on.set()
    assert client.get(f"{address}/tile/0/2?rows=0,9&columns=0,9&size=9,9").status == 200
    assert computed == [0, 2]


def test_tasks_that_nobody_wants_keep_nobody_out(served: Serve) -> None:
    """There is room for one that waits."""
    client = served(waiting=1)
    begun, go_on = threading.Event(), threading.Event()

    def hold(given: Any) -> None:
        begun.set()
        assert go_on.wait(30)

    client.viewer.before = hold
    client("POST", "/looks", {"text": "first"})
    assert begun.wait(30)
    left = client("POST", "/looks", {"text": "left"}).json["id"]
    assert client("POST", "/looks", {"text": "refused"}).status == 503
    leave(client, f"/looks/{left}")
    wanted = client("POST", "/looks", {"text": "wanted"})
    go_on.set()
    assert client.wait(f"/looks/{wanted.json['id']}").status == 200
    assert client.get(f"/looks/{left}").status == 404


def test_several_users_at_once(served: Serve) -> None:
    """Those of `benchmarks/explorer_load.py`, for a few seconds: none loses a look, and all answers are right."""
    tally = explorer_load.load(served().port, 8, 4, explorer_load.random_texts(7, 20, random.Random(1)), 0.05, 3)
    assert (tally.lost, tally.wrong) == (0, [])
    assert tally.requests["pages"] >= 8
    assert tally.requests["looks"] > 0


def test_sights_that_are_large_are_let_go_but_the_last(served: Serve) -> None:
    client = served(sight_bytes=1)
    first, second = client.look(text(5)), client.look(text(7))
    assert (client.get(first).status, client.get(second).status) == (404, 200)


def test_one_look_at_a_time_and_so_many_waiting(served: Serve) -> None:
    client = served(waiting=1)
    begun, go_on = threading.Event(), threading.Event()
    threads = []

    def hold(given: Any) -> None:
        threads.append(threading.get_ident())
        begun.set()
        assert go_on.wait(30)

    client.viewer.before = hold
    first = f"/looks/{client('POST', '/looks', {'text': 'first'}).json['id']}"
    assert begun.wait(30)
    second = f"/looks/{client('POST', '/looks', {'text': 'second'}).json['id']}"
    refused = client("POST", "/looks", {"text": "third"})
    assert (refused.status, refused.json) == (
        503,
        {"message": "too many requests are waiting for the model; try again in a moment"},
    )
    running, waiting = client.get(first), client.get(second)
    assert (running.status, running.json["state"]) == (202, "running")
    assert running.json["seconds"] >= 0
    assert (waiting.status, waiting.json) == (202, {"state": "waiting"})
    go_on.set()
    assert client.wait(first).status == client.wait(second).status == 200
    assert len(threads) == 2
    assert len(set(threads)) == 1


def test_a_file_is_data_and_bounded(served: Serve) -> None:
    client, given = served("image", file_bytes=5), []
    client.viewer.before = given.append
    data = base64.b64encode(b"\x01\x02\x03\x04\x05").decode()
    begun = client("POST", "/looks", {"name": "../../etc/passwd", "data": data})
    assert client.wait(f"/looks/{begun.json['id']}").status == 200
    assert given == [File("../../etc/passwd", b"\x01\x02\x03\x04\x05")]
    large = client("POST", "/looks", {"name": "a", "data": base64.b64encode(b"123456").decode()})
    assert large.status == 413
    assert client("POST", "/looks", {"name": "a", "data": "no base64!"}).json == {"message": "the file is not base64"}
    assert client("POST", "/looks", {"text": "a"}).status == 400
    assert len(given) == 1


def test_a_port_that_is_taken_is_told() -> None:
    with listen(Address()) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UserError, match=rf"^cannot listen at 127\.0\.0\.1, port {port}: Address already in use$"):
            listen(Address(port=port))
    with pytest.raises(UserError, match=r"^port is 70000, but must be from 0 to 65535$"):
        listen(Address(port=70_000))
    with pytest.raises(UserError, match="cannot listen at no such host, port 0: "):
        listen(Address("no such host"))


def test_a_model_that_writes_goes_on_with_a_text(served: Serve) -> None:
    """A few tokens for each request; what does not write, or does not chat, says so."""
    client = served()
    answer = client("POST", "/writings", {"text": "one", "chat": ""})
    assert (answer.status, answer.json["message"]) == (422, "this model writes no text")
    client.viewer.chats = False
    client.viewer.write = lambda text, count, chat: ContinuedText(f"{text} and {count} more", True)
    answer = client("POST", "/writings", {"text": "one", "chat": ""})
    assert answer.json == {"text": "one and 4 more", "ended": True}
    answer = client("POST", "/writings", {"text": "one", "chat": "yes"})
    assert (answer.status, answer.json["message"]) == (422, "this model was not trained to chat")
    assert client("POST", "/writings", {"text": "one"}).status == 400


def weights_of(client: Client, address: str, site: int, tokens: int) -> torch.Tensor:
    """All weights of the second head of a site, as the server sends them."""
    sent = client.get(f"{address}/tile/{site}/1?rows=0,{tokens}&columns=0,{tokens}&size={tokens},{tokens}")
    return torch.from_numpy(np.frombuffer(sent.body, np.float32).reshape(tokens, tokens).copy())


def test_two_looks_beside_each_other(client: Client) -> None:
    """The page of both has the sites of both in turn, and each site the numbers of its own look."""
    first, second = client.look(text(5)), client.look(text(7))
    both = f"{first}~{second.rpartition('/')[2]}"
    head = client.wait(both).json
    names = ["A.layers.0", "A.layers.1", "B.layers.0", "B.layers.1", "A.rollout of layers.*", "B.rollout of layers.*"]
    assert [site["name"] for site in head["sites"]] == names
    assert head["title"] == f"A: {text(5)} · B: {text(7)[:100]}"
    for place, (look, site) in enumerate([(first, 0), (first, 1), (second, 0), (second, 1), (first, 2), (second, 2)]):
        assert client.get(f"{both}/maps/{place}").body == client.get(f"{look}/maps/{site}").body
    assert client.get(f"{both}/rows/3/1?rows=0,7").body == client.get(f"{second}/rows/1/1?rows=0,7").body
    seen = client.viewer.seen[text(7)].sight["layers.1"].weights()[0, 1]
    assert torch.allclose(weights_of(client, both, 3, 7), seen, atol=1e-7)
    assert client.get(f"{both}/maps/6").json == {"message": "there is no site 6 among 6"}
    for other in (f"{first}~none", f"{both}~{first.rpartition('/')[2]}"):
        assert client.get(f"{other}/maps/0").status == 404


def test_two_models_beside_each_other(served: Serve) -> None:
    """A request names the second model; both read the same text, whose places the page has once."""
    client = served(second=(second := FakeViewer(seed=4)))
    names = [client("POST", f"/looks{model}", {"text": text(5)}).json["id"] for model in ("", "?model=second")]
    both = f"/looks/{'~'.join(names)}"
    head = client.wait(both).json
    assert head["title"] == text(5)
    assert len(head["sides"]) == 1
    for place, viewer in ((0, client.viewer), (2, second)):
        seen = viewer.seen[text(5)].sight["layers.0"].weights()[0, 1]
        assert torch.allclose(weights_of(client, both, place, 5), seen, atol=1e-7)
    assert client("POST", "/looks?model=third", {"text": "a"}).json == {"message": "there is no such model"}
    assert served()("POST", "/looks?model=second", {"text": "a"}).status == 400


def test_a_pair_of_which_one_failed_says_why(served: Serve) -> None:
    client = served(tokens=6)
    names = [client("POST", "/looks", {"text": text(count)}).json["id"] for count in (5, 7)]
    answer = client.wait(f"/looks/{'~'.join(names)}")
    assert answer.json == {"message": "the text has 7 tokens, but at most 6 are looked at"}


def test_points_are_those_of_the_sight(client: Client) -> None:
    sight = points_sight()
    client.viewer.look = lambda given, most, measure: LookResult(sight, {}, "points", [])  # type: ignore[method-assign]
    address = client.look("a boat")
    (site,) = client.get(address).json["sites"]
    assert (site["points"], site["grids"]) == (6, [[8, 8], [4, 4]])
    numbers = np.frombuffer(client.get(f"{address}/points/0/1?rows=2,4").body, np.float32).reshape(3, 2, 6)
    points = sight[""].points(heads=[1], queries=[2, 3])
    assert np.array_equal(numbers[:2], np.moveaxis(points.places[0, 0].numpy(), -1, 0))
    assert np.array_equal(numbers[2], points.weights[0, 0])
    answer = client.get(f"{address}/points/0/1?rows=4,6")
    assert (answer.status, answer.json) == (422, {"message": "there are no queries 4 to 6 among 5"})


def test_other_measures_are_looks_of_their_own(client: Client) -> None:
    name = client("POST", "/looks", {"text": text(23), "measure": "values"}).json["id"]
    head = client.wait(f"/looks/{name}").json
    assert {site["shows"] for site in head["sites"]} == {"values"}
    norms = client.viewer.seen[text(23)].sight["layers.1"]
    numbers = np.frombuffer(client.get(f"/looks/{name}/tile/1/2?rows=9,20&columns=3,8&size=11,5").body, np.float32)
    assert np.allclose(numbers.reshape(11, 5), norms.weights()[0, 2, 9:20, 3:8], atol=1e-6)
    answer = client("POST", "/looks", {"text": text(23), "measure": "sizes"})
    known = "weights, without-sinks, values, gradients, relevance"
    assert (answer.status, answer.json) == (400, {"message": f"measure must be one of {known}"})
    name = client("POST", "/looks", {"text": text(23), "measure": "relevance"}).json["id"]
    assert "no answer with a probability" in client.wait(f"/looks/{name}").json["message"]


def test_a_site_without_points_says_so(client: Client) -> None:
    answer = client.get(f"{client.look(text(23))}/points/0/0?rows=0,5")
    assert (answer.status, answer.json) == (422, {"message": "layers.0 looks at no points"})
