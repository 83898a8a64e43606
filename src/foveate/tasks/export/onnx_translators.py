"""Translators as three ONNX files, with the names that optimum gives them.

The encoder reads the source once. The decoder writes the first token, and the decoder with a past each later one: it
is given the keys and values of those before.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate.attention import Memory, padding
from foveate.contracts import Output
from foveate.errors import UserError
from foveate.files import written
from foveate.interop.onnx import Sample, export_onnx
from foveate.nn import DecoderStackState, SinusoidalPositions, longest_sequence
from foveate.tasks.export.translators import write_without_weights
from foveate.tasks.translator import Translator

ENCODER, DECODER, WITH_PAST = "encoder_model.onnx", "decoder_model.onnx", "decoder_with_past_model.onnx"

ABOUT = "onnx.json"

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
    """The decoder of a translator at its first step: the logits after each token of a target, and the keys and values
    of each block, of the target and of the source."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(
        self, input_ids: Tensor, encoder_hidden_states: Tensor, encoder_attention_mask: Tensor
    ) -> tuple[Tensor, ...]:
        blocks = self.model.decoder
        past = [block.self.memory(encoder_hidden_states[:, :0]) for block in blocks]
        source = [block.cross.memory(encoder_hidden_states) for block in blocks]
        found = self.model.decode(input_ids, encoder_hidden_states, padding(encoder_attention_mask.sum(1)), past)
        pairs = zip(past, source, strict=True)
        return found.logits, *(part for pair in pairs for one in pair for part in (one.keys, one.values))


class DecoderWithPast(nn.Module):
    """The decoder at every later step: the logits after one more token, and the keys and values of the target."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, input_ids: Tensor, encoder_attention_mask: Tensor, **past: Tensor) -> tuple[Tensor, ...]:
        own, source = (
            [
                Memory(past[_past(number, side, "key")], past[_past(number, side, "value")], layer.score)
                for number, layer in enumerate(getattr(block, name) for block in self.model.decoder)
            ]
            for side, name in (("decoder", "self"), ("encoder", "cross"))
        )
        state = DecoderStackState(own, source, encoder_attention_mask.sum(1))
        logits = self.model.step(input_ids[:, 0], state)
        return logits[:, None], *(part for one in own for part in (one.keys, one.values))


def _past(number: int, side: str, part: str) -> str:
    """What optimum calls keys and values of a block that are given."""
    return f"past_key_values.{number}.{side}.{part}"


def _present(blocks: int, sides: Sequence[str]) -> list[str]:
    """What it calls those that come out."""
    return [f"present.{n}.{side}.{part}" for n in range(blocks) for side in sides for part in ("key", "value")]


def translator_to_onnx(skill: Translator, out: Path) -> float:
    """Write the three files, the tokenizers, `config.json` and `generation_config.json` where transformers has such a
    model, and onnx.json, which names inputs, outputs and the tokens of both ends.

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
    cases = [_inputs(model, rows, min(source, most), min(target, most - 1)) for rows, source, target in SIZES]
    out.mkdir(parents=True, exist_ok=True)
    blocks, worst = len(model.decoder), 0.0
    for kind, name, place, outputs in (
        (Encoder, ENCODER, 0, ["last_hidden_state"]),
        (Decoder, DECODER, 1, ["logits", *_present(blocks, ("decoder", "encoder"))]),
        (DecoderWithPast, WITH_PAST, 2, ["logits", *_present(blocks, ("decoder",))]),
    ):
        first, *others = (case[place] for case in cases)
        free = {one: _free(one, kind) for one in first}
        worst = max(worst, export_onnx(kind(model), Sample(first, free), others, out / name, outputs))
    _describe(skill, most, out)
    with suppress(UserError):  # of a model that transformers lacks
        write_without_weights(skill, out)
    return worst


def _free(name: str, kind: type[nn.Module]) -> dict[int, str]:
    """The dimensions of an input that have any size."""
    if name.startswith("past_key_values"):
        return {0: BATCH, 2: TARGET if ".decoder." in name else SOURCE}
    if name != "input_ids" or kind is Encoder:
        return {0: BATCH, 1: SOURCE}
    return {0: BATCH, 1: TARGET} if kind is Decoder else {0: BATCH}


def _inputs(model: Any, rows: int, source: int, target: int) -> tuple[Mapping[str, Tensor], ...]:
    """Random inputs of the encoder, of the decoder, and of one more step of it."""
    random = torch.Generator().manual_seed(1)
    tokens = torch.randint(4, model.config.src_vocab, (rows, source), generator=random)
    lengths = torch.randint(1, source + 1, (rows,), generator=random)
    mask = (torch.arange(source) < lengths[:, None]).long()
    written = torch.randint(4, model.config.tgt_vocab, (rows, target), generator=random)
    with torch.no_grad():
        encoded = model.eval().encode(tokens, padding(lengths))
        decoder = {"input_ids": written, "encoder_hidden_states": encoded, "encoder_attention_mask": mask}
        _, *present = Decoder(model)(**decoder)
    names = _present(len(model.decoder), ("decoder", "encoder"))
    past = {f"past_key_values{name.removeprefix('present')}": one for name, one in zip(names, present, strict=True)}
    again = {"input_ids": written[:, :1], "encoder_attention_mask": mask, **past}
    return {"input_ids": tokens, "attention_mask": mask}, decoder, again


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
        WITH_PAST: {"inputs": ["input_ids", "encoder_attention_mask", "past_key_values.*"], "output": "logits"},
        "before_source": [*before],
        "behind_source": [*behind],
        "decoder_start_token_id": special.start,
        "eos_token_id": special.end,
        "never_written": [*special.never_written],
        "longest": most,
    }
    with written(out / ABOUT) as path:
        path.write_text(json.dumps(about, indent=1), encoding="utf-8")
