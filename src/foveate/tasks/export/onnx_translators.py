"""Translators as two ONNX files, with the names that optimum gives them: the encoder, which reads the source once, and
the decoder, which reads the target so far for each next token."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate.attention import padding
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.files import written
from foveate.interop.onnx import Sample, export_onnx
from foveate.nn import SinusoidalPositions, longest_sequence
from foveate.tasks.translator import Translator

ENCODER, DECODER, ABOUT = "encoder_model.onnx", "decoder_model.onnx", "onnx.json"

FAMILIES = ("transformer", "t5")
"""Those whose decoder reads a whole target at once."""

LONGEST = 1024
"""Tokens of a text at most where a model of any length would read more: the files hold this many waves."""

SIZES = ((3, 17, 13), (1, 2, 1), (2, 41, 29))
"""Rows, tokens of the source and of the target that the files are tried with."""

BATCH, SOURCE, TARGET = "batch", "source_length", "target_length"


class Encoder(nn.Module):
    """The encoder of a translator: the vectors of a source."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Output:
        return Output(self.model.encode(input_ids, padding(attention_mask.sum(1))))


class Decoder(nn.Module):
    """The decoder of a translator: the logits after each token of a target."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, input_ids: Tensor, encoder_hidden_states: Tensor, encoder_attention_mask: Tensor) -> Output:
        found: Output = self.model.decode(input_ids, encoder_hidden_states, padding(encoder_attention_mask.sum(1)))
        return found


def translator_to_onnx(skill: Translator, out: Path) -> float:
    """Write both files, the tokenizers, and onnx.json, which names inputs, outputs and the tokens of both ends.

    Returns the greatest difference of onnxruntime from PyTorch. Raises UserError for a model that cannot be written so.
    """
    family = str(skill.description["family"])
    if family not in FAMILIES:
        raise UserError(f"a {family} is not written as ONNX: of translators, {' and '.join(FAMILIES)} are")
    model: Any = skill.model.to("cpu")
    for part in model.modules():
        if isinstance(part, SinusoidalPositions):
            part(LONGEST // 2)  # computes them up to twice this length, before the graph is drawn
    most = int(min(longest_sequence(model), LONGEST))
    cases = [_inputs(model, rows, min(source, most), min(target, most)) for rows, source, target in SIZES]
    out.mkdir(parents=True, exist_ok=True)
    worst = 0.0
    for kind, name, place, output in (
        (Encoder, ENCODER, 0, "last_hidden_state"),
        (Decoder, DECODER, 1, "logits"),
    ):
        first, *others = (case[place] for case in cases)
        free = {one: {0: BATCH, 1: SOURCE} for one in first}
        if kind is Decoder:
            free["input_ids"] = {0: BATCH, 1: TARGET}
        worst = max(worst, export_onnx(kind(model), Sample(first, free), others, out / name, output))
    _describe(skill, most, out)
    return worst


def _inputs(model: Any, rows: int, source: int, target: int) -> tuple[Mapping[str, Tensor], Mapping[str, Tensor]]:
    """Random inputs of the encoder and of the decoder."""
    random = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, model.config.src_vocab, (rows, source), generator=random)
    lengths = torch.randint(1, source + 1, (rows,), generator=random)
    mask = (torch.arange(source) < lengths[:, None]).long()
    with torch.no_grad():
        encoded = model.eval().encode(tokens, padding(lengths))
    written = torch.randint(4, model.config.tgt_vocab, (rows, target), generator=random)
    decoder = {"input_ids": written, "encoder_hidden_states": encoded, "encoder_attention_mask": mask}
    return {"input_ids": tokens, "attention_mask": mask}, decoder


def _describe(skill: Translator, most: int, out: Path) -> None:
    """Write the tokenizers, and what a program needs to know to translate with the files."""
    reads, writes = skill.processor.reads, skill.processor.writes
    for side, tokenizer in (("source", reads.tokenizer), ("target", writes.tokenizer)):
        with written(out / f"{side}_tokenizer.json") as path:
            tokenizer.save(path)
    special = writes.tokenizer.special
    before, behind = reads.around
    about = {
        ENCODER: {"inputs": ["input_ids", "attention_mask"], "output": "last_hidden_state"},
        DECODER: {"inputs": ["input_ids", "encoder_hidden_states", "encoder_attention_mask"], "output": "logits"},
        "before_source": [*before],
        "behind_source": [*behind],
        "decoder_start_token_id": special.start,
        "eos_token_id": special.end,
        "never_written": [*special.never_written],
        "longest": most,
    }
    with written(out / ABOUT) as path:
        path.write_text(json.dumps(about, indent=1), encoding="utf-8")
