"""What the launcher's variables may say, and what follows from them."""

import pytest
import torch

from foveate.cli import main
from foveate.errors import UserError
from foveate.training.hardware import choose_device, use_threads
from foveate.training.parallel import ProcessInfo, main_process, process_info, reports_errors

GOOD = {
    "RANK": "5",
    "WORLD_SIZE": "7",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "3",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}


@pytest.fixture
def second_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the second process of a machine's three, which are the last of seven."""
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)


def test_one_process_is_told_nothing() -> None:
    assert process_info({}) is None
    assert process_info({"LOCAL_RANK": "0", "MASTER_ADDR": "here"}) is None
    assert process_info({"RANK": "0", "WORLD_SIZE": "1"}) is None
    assert main_process()
    assert reports_errors()


def test_one_of_several() -> None:
    assert process_info(GOOD) == ProcessInfo(rank=5, size=7, local_rank=1, local_size=3)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "WORLD_SIZE",
            None,
            "WORLD_SIZE is not set, but RANK=5 is: start several processes with torchrun",
        ),
        ("RANK", None, "RANK is not set, but WORLD_SIZE=7 is: "),
        ("WORLD_SIZE", "two", "WORLD_SIZE is 'two', but must be a whole number: "),
        ("WORLD_SIZE", "0", "WORLD_SIZE is 0, but must be at least 1: "),
        ("WORLD_SIZE", "5", "RANK is 5, but must be below WORLD_SIZE, which is 5: "),
        ("RANK", "-1", "RANK is '-1', but must be a whole number: "),
        ("LOCAL_RANK", "3", "LOCAL_RANK is 3, but must be below LOCAL_WORLD_SIZE, which is 3: "),
        ("LOCAL_RANK", None, "LOCAL_RANK is not set, but RANK=5, WORLD_SIZE=7 is: "),
        ("LOCAL_WORLD_SIZE", "8", r"LOCAL_WORLD_SIZE is 8, but must be below WORLD_SIZE \+ 1, which is 8: "),
        ("MASTER_PORT", "70000", "MASTER_PORT is 70000, but must be below the number of ports, which is 65536: "),
        ("MASTER_ADDR", None, "MASTER_ADDR is not set, but WORLD_SIZE is 7: "),
    ],
)
def test_what_cannot_be_is_told_in_one_line(name: str, value: str | None, message: str) -> None:
    environment = {other: text for other, text in {**GOOD, name: value}.items() if text is not None}
    with pytest.raises(UserError, match=f"^{message}") as caught:
        process_info(environment)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("second_of_three")
def test_who_speaks_before_processes_know_of_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not main_process()
    assert not reports_errors()
    assert reports_errors(own=True)
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert not main_process()
    assert reports_errors()
    monkeypatch.setenv("RANK", "9")
    assert reports_errors()


@pytest.mark.usefixtures("second_of_three")
def test_each_process_of_a_machine_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(UserError, match=r"device 'cuda:1' cannot serve 7 processes: use cuda \(a GPU for each\)"):
        choose_device("cuda:1")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(UserError, match="3 processes on this machine, but 2 GPUs: start one process for each GPU"):
        choose_device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch, "empty", lambda *_, device: None)
    assert choose_device("cuda") == torch.device("cuda:1")


@pytest.mark.usefixtures("second_of_three")
def test_a_gpu_that_is_busy_is_the_trouble_of_its_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def busy(*_: object, device: torch.device) -> None:
        raise RuntimeError("CUDA error: device is busy")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(torch, "empty", busy)
    with pytest.raises(SystemExit):
        main(["train", "translate", "--device", "cuda"])
    said = "foveate: device 'cuda:1' cannot be used on this machine: CUDA error: device is busy\n"
    assert capsys.readouterr().err == said


@pytest.mark.usefixtures("second_of_three")
def test_processes_share_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    monkeypatch.setattr("foveate.training.hardware._processors", lambda: 17)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    use_threads(None)
    use_threads(2)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    use_threads(None)
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    use_threads(None)
    assert chosen == [17 // 3, 2]
