"""A command starts fast: what takes long to import is imported where it is used."""

import subprocess
import sys

HEAVY = ("matplotlib", "sympy", "torch._dynamo", "sacremoses", "transformers")
"""A third of a second each, or more."""

TRANSLATE = f"""
import sys

import torch

import foveate.cli
from foveate.decoding import Decoding, decode
from foveate.nn import packed

source = dict(source=torch.tensor([[4, 5, 2]]), source_lengths=torch.tensor([3]))
for preset in ("transformer-tiny", "rnn-attentive"):
    model = packed(foveate.create(preset, src_vocab=9, tgt_vocab=9).eval())
    with torch.inference_mode():
        decode(model, source, source["source_lengths"], Decoding())
print(*[name for name in {HEAVY} if name in sys.modules])
"""


def test_translating_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", TRANSLATE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
