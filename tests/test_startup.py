"""Ctrl-C at each moment of a command's start, and in programs that only import foveate."""

import signal
import subprocess
import sys

import pytest

PROGRAM = [sys.executable, "-m", "foveate"]


PRESS = """
import importlib.abc, os, signal, sys

class Presses(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Presses())
"""


@pytest.mark.parametrize("module", ["foveate.errors", "dataclasses", "foveate.cli", "foveate.cli.run", "torch"])
def test_control_c_while_a_module_is_imported(module: str, tmp_path) -> None:
    """The signal comes at that very import, wherever the machine's speed would have placed it."""
    (tmp_path / "sitecustomize.py").write_text(PRESS.format(module=module))
    paths = {"PYTHONPATH": f"{tmp_path}:{':'.join(filter(None, sys.path))}", "PATH": ""}
    done = subprocess.run([*PROGRAM, "run", str(tmp_path)], env=paths, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "foveate: stopped\n")


def test_programs_that_import_foveate_keep_their_handling() -> None:
    code = "import signal, foveate, foveate.cli; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n"


def test_a_command_of_a_program_leaves_its_handling() -> None:
    """`foveate.cli.main` called from Python."""
    before = signal.getsignal(signal.SIGINT)
    from foveate.cli import main

    main(["--version"])
    assert signal.getsignal(signal.SIGINT) is before
