"""Where programs end: what they cannot write or tell, and who holds the folder that they write to."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from small import FLAGS, Trained

from foveate import tasks
from foveate.cli import main
from foveate.errors import UserError


def test_python_saves_nothing_into_a_folder_that_a_training_holds(trained: Trained, tmp_path: Path) -> None:
    """A process that trains there, and afterwards nobody; a copy is saved where no training ever was."""
    model, folder = tasks.load(trained.folder), tmp_path / "held"
    code = (
        "from pathlib import Path; import sys; from foveate.training.folder_lock import lock_folder, Processes\n"
        "with lock_folder(Path(sys.argv[1]), Processes()): print(flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, str(folder)], **pipes) as process:
        process.stdout.readline()
        with pytest.raises(UserError, match=r"a training is running in .*held: save into another folder"):
            model.save(folder)
        assert not (folder / "config.json").exists()
        process.communicate(b"")
    for place in (folder, tmp_path / "new"):
        model.save(place)
        assert tasks.load(place).task.model == model.task.model
    assert not (tmp_path / "new" / "checkpoints").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("shell", ["2>/dev/full", "2>&-"])
def test_a_training_ends_well_where_nothing_can_be_told(data: Path, tmp_path: Path, shell: str) -> None:
    """Standard error on a full disk, or closed."""
    train = [sys.executable, "-m", "foveate", "train", "translate", "--data", str(data), "--out", str(tmp_path / "run")]
    done = subprocess.run(f"{shlex.join([*train, *FLAGS, '--steps', '12'])} {shell}", shell=True, timeout=300)
    assert done.returncode == 0
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_picture_with_a_line_end_in_its_name_is_told_in_one_line(trained: Trained, tmp_path: Path, capsys) -> None:
    word = trained.data.read_text(encoding="utf-8").split("\t")[0]
    main(["run", str(trained.folder), word, "--picture", str(tmp_path / "a\nb.png")])
    assert capsys.readouterr().err.splitlines() == [f"drew {tmp_path}/a\\nb.png"]
