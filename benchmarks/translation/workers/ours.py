"""Beam search of forced length by foveate: FOLDER SOURCES.json THREADS PRECISION."""

import json
import sys
from pathlib import Path
from typing import Any

import foveate  # noqa: F401, isort: skip, before torch: it says how torch's threads wait

import torch
from serving import serve
from torch import Tensor

from foveate import models, run_dir
from foveate.config import from_dict
from foveate.contracts import State
from foveate.decoding import beam
from foveate.inference.cpu import optimize_for_cpu
from foveate.special_tokens import LEARNED

END = LEARNED.end


class Forced:
    """A model that never ends."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def prefill(self, tokens: Tensor, **inputs: Tensor) -> tuple[Tensor, State]:
        state = self._model.start(**inputs)
        return self.step(tokens[:, 0], state), state

    def step(self, tokens: Tensor, state: State) -> Tensor:
        logits = self._model.step(tokens, state)
        logits[:, END] = -torch.inf
        return logits


def main(folder: str, sources: str, threads: str, precision: str) -> None:
    torch.set_num_threads(int(threads))
    asked = json.loads(Path(sources).read_text(encoding="utf-8"))
    found = run_dir.load(folder)
    config = from_dict(models.config_class("transformer"), found.description["architecture"], folder)
    model = models.build("transformer", config)
    found.fill(model)
    writer = Forced(optimize_for_cpu(model.eval(), precision))
    source = torch.tensor(asked["sources"])
    inputs = {"source": source, "source_lengths": torch.full((len(source),), source.shape[1])}

    def job() -> dict[str, Any]:
        with torch.inference_mode():
            best = [each[0] for each in beam(writer, inputs, LEARNED, asked["length"], asked["beams"])]
        return {"tokens": [one.tokens for one in best], "scores": [one.log_prob / len(one.tokens) for one in best]}

    serve(job)


main(*sys.argv[1:])
