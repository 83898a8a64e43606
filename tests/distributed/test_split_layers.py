"""Processes that split each layer among them train as one process does, with or without shards beside."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import split_processes
import torch
from safetensors.torch import load_file
from split_processes import FOUR, LARGER, MODELS, STACK, create, run, steps

import foveate
from foveate.errors import UserError
from foveate.experiments.size import measure_part
from foveate.training import Training
from foveate.training.parallel import ProcessInfo, split_layers
from foveate.training.parallel.group import Group
from foveate.training.parallel.plan import sliced_layers
from foveate.training.parallel.sequence_slices import numbers_of

PROCESSES = {"tensor": 2, "both": 4}


@pytest.fixture(scope="module", params=["tensor", "both"])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Where several processes have trained; "from-one" holds a training that one process began."""
    way = request.param
    folder = tmp_path_factory.mktemp(way)
    run(folder / "from-one", 2)
    program = [sys.executable, split_processes.__file__, way, str(folder), str(PROCESSES[way])]
    processes = [
        subprocess.Popen([*program, str(rank)], stderr=subprocess.PIPE, text=True) for rank in range(PROCESSES[way])
    ]
    told = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES[way], "\n".join(told)
    return way, folder


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(
            one[name], other[name], rtol=1e-5, atol=1e-6, msg=lambda text, name=name: name + text
        )


def test_losses_gradients_and_weights_are_those_of_one_process(played: tuple[str, Path]) -> None:
    way, folder = played
    for kind in MODELS if way == "tensor" else ("gopher", "vit", *(f"{kind}-on-four" for kind in FOUR)):
        found, numbers = steps(kind.removesuffix("-on-four"))
        assert_close(load_file(folder / f"{kind}.safetensors"), found)
        together = json.loads((folder / f"{kind}.json").read_text(encoding="utf-8"))
        assert together == pytest.approx(numbers, rel=1e-5)


def test_in_float16_processes_halve_the_scale_of_the_loss_together(played: tuple[str, Path]) -> None:
    way, folder = played
    if way != "tensor":
        pytest.skip("two processes show it")
    first, second = (json.loads((folder / f"float16-{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1))
    assert first == second
    _, alone = steps("gpt", precision="float16")
    assert 1 < first[3] < 2.0**40
    assert first[3] == first[7]
    for place in (0, 2, 4, 6):  # losses and norms
        assert first[place] == pytest.approx(alone[place], rel=1e-2)


def test_norms_and_residual_dropout_act_on_slices() -> None:
    """Of all blocks of the families that processes split; dropout of embeddings and inside of layers does not."""
    for kind, count in {"gpt": 9, "vit": 9, "transformer": 18}.items():
        assert len(list(sliced_layers(create(kind)))) == count
    assert "stack.blocks.1.around_self.dropout" in sliced_layers(create("gpt"))
    assert list(sliced_layers(foveate.create("rnn-language", vocabulary=19))) == []


def test_slices_have_random_numbers_of_their_own_and_those_of_all_go_on() -> None:
    found = []
    for process in (0, 1):
        torch.manual_seed(5)
        with numbers_of(process, torch.device("cpu")):
            inside = torch.rand(7)
        found.append((inside, torch.rand(7)))
    assert not torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


def test_all_processes_have_the_same_weights_and_a_resumed_training_ends_with_them(played: tuple[str, Path]) -> None:
    way, folder = played
    first = load_file(folder / "whole-0.safetensors")
    for name in [f"{kind}-{rank}" for kind in ("whole", "parts") for rank in range(PROCESSES[way])]:
        found = load_file(folder / f"{name}.safetensors")
        assert all(torch.equal(found[one], first[one]) for one in first), name


def test_one_process_resumes_what_several_began_and_the_reverse(played: tuple[str, Path], tmp_path: Path) -> None:
    _, folder = played
    alone = run(tmp_path / "alone", 4)
    assert_close(run(folder / "to-one", 4), alone)
    assert_close(run(folder / "from-one", 4), alone)


def test_memory_is_what_foveate_size_counts(played: tuple[str, Path]) -> None:
    way, folder = played
    if way == "both":
        pytest.skip("the same layers")
    sizes = {**STACK, **LARGER}
    config = foveate.create("gpt-tiny", device="meta", **sizes).config
    whole, half = (measure_part("gpt", config, 3, 7, parts) for parts in (1, 2))
    for rank in (0, 1):
        found = json.loads((folder / f"memory-{rank}.json").read_text(encoding="utf-8"))
        assert found["logits"] == 3 * 7 * 48
        assert found["parameters"] == half.parameters
        assert found["activations"] == pytest.approx(half.activations, rel=0.1)
    assert half.activations < 0.8 * whole.activations


def test_layers_that_cannot_be_split(played: tuple[str, Path]) -> None:
    way, folder = played
    if way == "both":
        pytest.skip("the same check")
    heads, hidden = json.loads((folder / "told-1.json").read_text(encoding="utf-8"))
    advice = "use as many processes as divide it, or --parallel shard"
    assert heads == f"2 processes cannot split 5 heads of 'stack.blocks.0.self.query': {advice}"
    assert hidden == f"2 processes cannot split 7 hidden units of 'stack.blocks.0.feedforward.inner': {advice}"


@pytest.mark.parametrize("name", ["qwen3-0.6b", "olmo2-1b"])
def test_norms_of_queries_and_keys_cannot_be_split(name: str) -> None:
    model = foveate.create(name, device="meta", layers=2)
    with pytest.raises(
        UserError, match=r"'stack\.blocks\.0\.self' normalizes queries and keys, which processes cannot"
    ):
        split_layers._check(model, 2)
    with pytest.raises(UserError, match=f"devices cannot split {name}: it normalizes queries and keys"):
        measure_part(name, model.config, 3, 7, 2)


@pytest.mark.parametrize(
    ("changes", "part"),
    [({"head_gate": True}, "gate"), ({"mixing": "talking"}, "select"), ({"head_score": "cosine"}, "score")],
)
def test_what_belongs_to_all_heads_cannot_be_split(changes: dict[str, Any], part: str) -> None:
    model = foveate.create("gpt-tiny", device="meta", vocabulary=9, **changes)
    with pytest.raises(UserError, match=rf"'stack\.blocks\.0\.self\.{part}.* is that of all heads"):
        split_layers._check(model, 2)


def test_groups_of_processes() -> None:
    assert [Training(parallel=way).splitting for way in ("auto", "shard", "tensor", "both")] == [1, 1, None, 2]  # type: ignore[arg-type]
    group = Group(ProcessInfo(5, 6, 5, 6), torch.device("cpu"), 2)
    assert (group.groups, group.leader) == (3, 4)
    with pytest.raises(UserError, match=r"^6 processes are not a multiple of the 4 that split each layer$"):
        Group(ProcessInfo(5, 6, 5, 6), torch.device("cpu"), 4)
