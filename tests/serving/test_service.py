"""What a service answers to right and wrong requests; that each task's answers are those of `run` is tested for all of
them in test_every_task.py."""

import base64
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from served_skill import LIMITS, Client, served

import foveate
from foveate.tasks.skill import Skill

TEXTS = ("a great film", "poor and dull", "lovely", "grey")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of a few words, which a training of some steps made."""
    place = tmp_path_factory.mktemp("served")
    words = {"good": ("great", "lovely", "fine"), "bad": ("poor", "dull", "grey")}
    lines = [f"{label}\tthe {one} film was {two}" for label, own in words.items() for one in own for two in own]
    (place / "films.tsv").write_text("\n".join(lines * 4))
    settings: dict[str, Any] = {"data": (place / "films.tsv",), "steps": 2, "epochs": None, "out": place / "run"}
    settings |= {"validate_every": 2, "save_every": 2}
    foveate.train(foveate.recipe("classify", model="transformer-classifier", **settings))
    return place / "run"


@pytest.fixture(scope="module")
def skill(folder: Path) -> Skill:
    return foveate.load(folder)


@pytest.fixture(scope="module")
def client(skill: Skill) -> Iterator[Client]:
    with served(skill) as found:
        yield found


def test_one_and_many(client: Client, skill: Skill) -> None:
    expected = skill(list(TEXTS))
    answers = client.answer(inputs=[*TEXTS]).json["answers"]
    assert [one["label"] for one in answers] == [one.label for one in expected]
    assert [one["probability"] for one in answers] == pytest.approx([one.probability for one in expected], abs=1e-5)
    one = client.answer(input=TEXTS[0])
    assert one.status == 200
    assert one.json["label"] == answers[0]["label"]
    assert one.json["input"] == TEXTS[0]


def test_a_text_as_it_is(client: Client) -> None:
    found = client("POST", "/answer", "très bon".encode(), content_type="text/plain; charset=utf-8")
    assert found.json["input"] == "très bon"


def test_options(client: Client, skill: Skill) -> None:
    answer = client.answer(input=TEXTS[0], options={"top": 2}).json
    assert len(answer["probabilities"]) == 2
    description = client("GET", "/openapi.json").json
    asked = description["paths"]["/answer"]["post"]["requestBody"]["content"]["application/json"]["schema"]["oneOf"][0]
    assert asked["properties"]["options"]["properties"]["top"] == {"type": "integer", "maximum": 4096}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "not JSON"),
        (b"[]", 400, "not a JSON object"),
        ({}, 400, "either input or inputs"),
        ({"input": "a", "inputs": ["b"]}, 400, "either input or inputs"),
        ({"inputs": []}, 400, "a list of 1 to 256"),
        ({"inputs": "text"}, 400, "a list of 1 to 256"),
        ({"inputs": ["a"] * 257}, 400, "a list of 1 to 256"),
        ({"inputs": [3]}, 400, "must be a text, not 3"),
        ({"input": "a", "options": []}, 400, "options must be"),
        ({"input": "a", "more": 1}, 400, "the request has more"),
        ({"input": "a", "options": {"topp": 2}}, 422, "unknown option 'topp'; did you mean top"),
        ({"input": "a", "options": {"top": "2"}}, 422, "top is '2', but must be a whole number"),
        ({"input": "a", "options": {"top": True}}, 422, "top is True"),
        ({"input": "a", "options": {"top": 10**9}}, 422, "4,096 at most"),
        ({"input": "a", "options": {"top": -1}}, 422, "top"),
        ({"input": "a" * 2**24}, 413, "too large"),
    ],
)
def test_mistakes(client: Client, body: Any, status: int, message: str) -> None:
    found = client("POST", "/answer", body)
    assert found.status == status
    assert message in found.json["message"]


def test_other_addresses_and_ways(client: Client) -> None:
    assert client("GET", "/answer").status == 405
    assert client("GET", "/nothing").status == 404
    assert client("POST", "/answer", b"a", content_type="image/png").status == 415


def test_pages_of_other_sites_are_refused(client: Client) -> None:
    body = {"input": "a"}
    assert client("POST", "/answer", body, origin="http://elsewhere.example").status == 403
    assert client("POST", "/answer", body, host="elsewhere.example").status == 403
    assert client("POST", "/answer", body, sec_fetch_site="cross-site").status == 403
    assert "access-control-allow-origin" not in client("POST", "/answer", body).headers


def test_look(client: Client, skill: Skill) -> None:
    found = client("POST", "/look", {"input": TEXTS[0]}).json
    looked = skill.look(TEXTS[0])
    assert [site["name"] for site in found["sites"]] == looked.sight.sites
    site = looked.sight[found["sites"][0]["name"]]
    assert found["sites"][0]["mean"] == pytest.approx(site.weights()[0].mean(0).numpy(), abs=1e-5)
    assert found["sites"][0]["keys"][-1] == "film"
    one = client("POST", "/look", {"input": TEXTS[0], "sites": [site.name], "heads": [1]}).json
    assert one["sites"][0]["weights"]["1"] == pytest.approx(site.weights([1])[0, 0].numpy(), abs=1e-5)
    page = client("POST", "/look", {"input": TEXTS[0]}, accept="text/html")
    assert page.headers["content-type"].startswith("text/html")
    assert b"great" in page.body


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        ({"sites": ["nowhere*"]}, 422, "nowhere"),
        ({"sites": []}, 400, "sites is"),
        ({"heads": [99]}, 422, "has the heads 0 to"),
        ({"heads": ["a"]}, 400, "heads is"),
        ({"options": {"top": 1}}, 400, "a look has input"),
    ],
)
def test_mistakes_in_looks(client: Client, more: dict[str, Any], status: int, message: str) -> None:
    found = client("POST", "/look", {"input": TEXTS[0], **more})
    assert found.status == status
    assert message in found.json["message"]


def test_a_look_has_no_more_weights_than_it_may(skill: Skill) -> None:
    with served(skill, limits=replace(LIMITS, weights=3)) as client:
        found = client("POST", "/look", {"input": TEXTS[0]})
    assert found.status == 422
    assert "the limit is 3" in found.json["message"]


def test_health_page_and_metrics(skill: Skill) -> None:
    with served(skill) as client:
        assert client("GET", "/health").json == {"status": "ok", "task": "classify", "model": skill.name}
        assert b"curl" in client("GET", "/").body
        client.answer(inputs=[*TEXTS])
        client.answer()
        text = client("GET", "/metrics").body.decode()
    counts = dict(re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE))
    assert counts['foveate_requests_total{path="answer",status="200"}'] == "1.0"
    assert counts['foveate_requests_total{path="answer",status="400"}'] == "1.0"
    assert counts["foveate_batch_inputs_sum"] == "4.0"
    assert counts["foveate_waiting_requests"] == "0.0"


def test_a_request_is_given_up_in_time(skill: Skill, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    monkeypatch.setattr(Skill, "answer", lambda *_: end.wait(20) and [])
    with served(skill, limits=replace(LIMITS, seconds=0.2)) as client:
        found = client.answer(input="a")
        end.set()
    assert found.status == 504
    assert "0.2 seconds" in found.json["message"]


def test_many_clients_get_their_own_answers_in_few_batches(skill: Skill) -> None:
    expected = {text: one.label for text, one in zip(TEXTS, skill(list(TEXTS)), strict=True)}
    wrong: list[Any] = []

    def ask(client: Client, turn: int) -> None:
        for number in range(10):
            text = TEXTS[(turn + number) % len(TEXTS)]
            found = client.answer(input=text)
            if found.status != 200 or (found.json["input"], found.json["label"]) != (text, expected[text]):
                wrong.append(found)

    with served(skill) as client:
        threads = [threading.Thread(target=ask, args=(client, turn)) for turn in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        text = client("GET", "/metrics").body.decode()
    assert not wrong
    batches = float(re.search(r"^foveate_batch_inputs_count (\S+)$", text, re.MULTILINE)[1])
    assert batches < 120


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_cleanly(folder: Path, ending: signal.Signals) -> None:
    """What is asked before is answered."""
    command = [sys.executable, "-m", "foveate", "serve", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        try:
            process.stdout.readline()
            client = Client(int(re.search(r":(\d+)/", process.stdout.readline())[1]))
            assert client.answer(input="a great film").status == 200
            process.send_signal(ending)
            assert process.wait(20) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_a_model_of_images_takes_files_alone(tmp_path: Path) -> None:
    """By JSON, or as they are; a text is no path of the server's."""
    for label in ("red", "blue"):
        (tmp_path / "data" / label).mkdir(parents=True)
        for number in range(8):
            pixels = np.zeros((16, 16, 3), np.uint8)
            pixels[..., ("red", "", "blue").index(label)] = 200 + number
            PIL.Image.fromarray(pixels).save(tmp_path / "data" / label / f"{number}.png")
    data = (tmp_path / "data",)
    settings: dict[str, Any] = {"data": data, "validation": data, "steps": 1, "epochs": None, "out": tmp_path / "run"}
    skill = foveate.train(foveate.recipe("classify-image", validate_every=1, save_every=1, **settings))
    image = (tmp_path / "data" / "red" / "3.png").read_bytes()
    with served(skill) as client:
        by_json = client.answer(input={"data": base64.b64encode(image).decode(), "name": "../../a red.png"})
        as_it_is = client("POST", "/answer", image, content_type="image/png")
        path = client.answer(input=str(tmp_path / "data" / "red" / "3.png"))
        half = {"data": base64.b64encode(image[:30]).decode(), "name": "half.png"}
        whole = {"data": base64.b64encode(image).decode()}
        first, damaged, last = client.answer(inputs=[whole, half, whole]).json["answers"]
        no_base64 = client.answer(input={"data": "*"})
    assert by_json.json["input"] == "../../a red.png"
    assert by_json.json["label"] == as_it_is.json["label"] in ("red", "blue")
    assert path.status == 400
    assert "this model reads files" in path.json["message"]
    assert first == last
    assert first["label"] == by_json.json["label"]
    assert "half.png" in damaged["error"]
    assert str(tmp_path.parent) not in json.dumps(damaged)
    assert "/tmp" not in json.dumps(damaged)
    assert no_base64.status == 400
