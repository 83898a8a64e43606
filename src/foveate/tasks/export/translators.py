"""Translators as Hugging Face folders, with the same logits and the same beam search in transformers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from foveate import models
from foveate.data.tokens.piece_tokenizer import PieceTokenizer
from foveate.data.tokens.public_tokenizer import ROLES, PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.decoding import Decoding
from foveate.decoding.token_rules import TokenRules
from foveate.errors import UserError
from foveate.interop.public_folder import is_public, layout_for, public_tensors, write_settings, write_tensors
from foveate.run_dir import CONFIG
from foveate.tasks.completion.exporting import public_tokenizer
from foveate.tasks.export.folders import TOKENIZERS, copy_files, fields_left
from foveate.tasks.hf.generation import GENERATION
from foveate.tasks.hf.translation_tokenizers import TARGET
from foveate.tasks.hf.translators import PublicTranslator
from foveate.tasks.translator import Translator

OPENS = "AutoModelForSeq2SeqLM"
"""What transformers opens them with."""

LONGEST = 512
"""Tokens of an output at most, where the settings of decoding go by the length of the source."""

EARLY = {"yes": True, "no": False, "never": "never", None: False}


def is_translator(task: Any) -> bool:
    """Returns whether it reads a text and writes another."""
    return isinstance(task, Translator)


def export_translator(skill: Translator, folder: Path) -> str:
    """Write the folder of a translator; the class of transformers that opens it.

    Raises UserError for a model that transformers does not have, before anything is written.
    """
    family = str(skill.description["family"])
    model: Any = skill.model
    if family == "transformer" and model.config.positions == "sinusoidal" and model.config.waves == "interleaved":
        model = sines_first(model)
    _, state = public_tensors(family, model)
    values = write_without_weights(skill, folder)
    write_tensors(folder, state, values)
    return OPENS


def write_without_weights(skill: Translator, folder: Path) -> dict[str, Any]:
    """Write `config.json`, `generation_config.json` and the tokenizers of a translator; the values of the first.

    Raises UserError for a model that transformers does not have, before anything is written.
    """
    family, config = str(skill.description["family"]), skill.model.config
    if getattr(config, "waves", None) == "interleaved":
        config = replace(config, waves="halves")  # type: ignore[type-var]
    values = dict(layout_for(family, config).write_config(config))
    if isinstance(skill, PublicTranslator):
        assert skill.folder is not None
        values |= fields_left(skill.folder, family, skill.model)
        _write_settings(folder, values)
        copy_files(skill.folder, folder, (*TOKENIZERS, GENERATION))
        return values
    writes, tokenizers = skill.processor.writes, _tokenizers(skill)
    generation = generation_values(writes.tokenizer.special, writes.decoding, writes.rules)
    values |= {name: value for name, value in generation.items() if name.endswith("_token_id")}
    _write_settings(folder, values)
    write_settings(folder / GENERATION, generation)
    if isinstance(tokenizers, Path):
        copy_files(tokenizers, folder, TOKENIZERS)
        return values
    source, target = tokenizers
    source.write_folder(folder)
    if target is not None:
        (folder / TARGET).mkdir(exist_ok=True)
        target.write_folder(folder / TARGET)
    return values


def _write_settings(folder: Path, values: dict[str, Any]) -> None:
    values["torch_dtype"] = "float32"
    folder.mkdir(parents=True, exist_ok=True)
    write_settings(folder / CONFIG, values)


def generation_values(special: Any, decoding: Decoding, rules: TokenRules | None) -> dict[str, Any]:
    """What `generation_config.json` says. Without rules of a folder, padding and start are never written."""
    rules = rules or TokenRules(end=special.end, never=tuple((token,) for token in special.never_written))
    beams = decoding.width if decoding.method == "beam" else 1
    values: dict[str, Any] = {
        "pad_token_id": special.pad,
        "eos_token_id": special.end,
        "decoder_start_token_id": special.start,
        "num_beams": beams,
        "max_length": (decoding.max_new_tokens or LONGEST) + 1,
        "forced_bos_token_id": rules.first,
        "forced_eos_token_id": rules.last,
        "min_length": rules.min_length,
        "no_repeat_ngram_size": rules.no_repeat_ngram_size,
        "repetition_penalty": rules.repetition_penalty,
        "bad_words_ids": [list(word) for word in rules.never] or None,
        "begin_suppress_tokens": list(rules.never_first) or None,
        "do_sample": decoding.method == "sample",
    }
    if beams > 1:
        values |= {"length_penalty": decoding.length_penalty, "early_stopping": EARLY[decoding.early_stopping]}
    return {name: value for name, value in values.items() if value is not None}


def sines_first(model: nn.Module) -> nn.Module:
    """The same Transformer with the waves of its positions in halves: its channels in another order."""
    config: Any = model.config
    order = torch.cat([torch.arange(0, config.width, 2), torch.arange(1, config.width, 2)])
    found = models.build("transformer", replace(config, waves="halves"))
    found.load_state_dict({name: _reordered(name, value, order) for name, value in model.state_dict().items()})
    return found.eval()


def _reordered(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """A tensor with the channels of the model in another order."""
    module, _, leaf = name.rpartition(".")
    if module.endswith(("_norm", ".norm", ".self.output", ".cross.output", "feedforward.outer")):
        return tensor[order]
    if leaf == "weight":
        return tensor[:, order]
    return tensor


def _tokenizers(skill: Translator) -> Path | tuple[PublicTokenizer, PublicTokenizer | None]:
    """The tokenizers of both sides, where the target's is another; or the folder that has their files."""
    reads, writes = skill.processor.reads, skill.processor.writes
    source, target = reads.tokenizer, writes.tokenizer
    if not isinstance(source, TextTokenizer):
        end = [target.special.end]
        own = public_tokenizer(source, [], end)
        return own, public_tokenizer(target, [], end) if writes.source_vocabulary else None
    start = skill.recipe.start
    if start is not None and is_public(Path(start)):
        return Path(start)
    if isinstance(source, PieceTokenizer):
        raise UserError(f"the pieces of SentencePiece are in the files of {start}, which is not there any more")
    named = {ROLES[role]: str(source.copy().id_to_token(number)) for role, number in target.special.ids.items()}
    return PublicTokenizer(source.copy(), named), None
