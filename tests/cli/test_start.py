"""A command starts fast: what takes long to import is imported where it is used."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("matplotlib", "sympy", "torch._dynamo", "sacremoses", "transformers")
"""A third of a second each, or more."""

TRANSLATE = f"""
import sys

import torch

import foveate.cli
from dataclasses import asdict
from foveate import run_dir, models
from foveate.decoding import Decoding, decode
from foveate.inference.cpu import optimize_for_cpu
from foveate.special_tokens import LEARNED
from foveate.tasks.run_config import load_run

source = dict(source=torch.tensor([[4, 5, 2]]), source_lengths=torch.tensor([3]))
for preset in ("transformer-tiny", "rnn-attentive"):
    made, family = foveate.create(preset, src_vocab=9, tgt_vocab=9), models.preset(preset).family
    described = dict(task="translate", family=family, architecture=asdict(made.config), recipe=dict())
    run_dir.save(preset, described, made.state_dict())
    model = optimize_for_cpu(load_run(preset, "cpu").model)
    with torch.inference_mode():
        decode(model, source, LEARNED, source["source_lengths"], Decoding())
classifier = foveate.create("transformer-classifier", vocabulary=9, classes=2).eval()  # it pools by an additive score
with torch.inference_mode():
    classifier(source["source"], source["source_lengths"])
print(*[name for name in {HEAVY} if name in sys.modules])
"""


def test_translating_imports_nothing_heavy(tmp_path: Path) -> None:
    program = [sys.executable, "-c", TRANSLATE]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


LISTS = """
import sys

import foveate.cli

for line in ("", "--help", "data", "data --help"):
    sys.argv = ["foveate", *line.split()]
    try:
        foveate.cli.main()
    except SystemExit:
        pass
    print(line, "torch" in sys.modules, file=sys.stderr)
"""


def test_what_only_lists_names_imports_no_torch() -> None:
    done = subprocess.run([sys.executable, "-c", LISTS], capture_output=True, text=True, check=False)
    assert done.stderr.count("False") == 4, done.stderr
    assert {"whisper-tiny.en", "fashion-mnist"} <= {*done.stdout.split()}
