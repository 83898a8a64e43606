"""Each layer of foveate imports only what is below it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_layers() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kept, 0 broken" in done.stdout
