"""Language models and translators for CTranslate2 (https://github.com/OpenNMT/CTranslate2), tried when they are
written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveate.data.tokens.piece_tokenizer import PieceTokenizer
from foveate.errors import UserError, one_line
from foveate.files import workshop
from foveate.interop.ctranslate2_translators import write_translator
from foveate.tasks.completion.completer import Completer
from foveate.tasks.completion.exporting import as_completer
from foveate.tasks.translator import Translator

CLOSE = 1e-3
"""By how much logits, or log-probabilities of a translator, may differ."""

TRIED = 7
"""Tokens of the text that a model is tried with."""


def export_to_ctranslate2(task: Any, out: Path) -> float:
    """Write the folder of a language model or a translator. Returns the greatest difference of CTranslate2's logits, or
    log-probabilities, from PyTorch's.

    Raises UserError for another model, one that the package cannot hold or computes otherwise, and without it.
    """
    translates = isinstance(task, Translator)
    if translates and (family := str(task.description["family"])) != "transformer":
        raise UserError(f"a {family} is not written for CTranslate2: of translators, a transformer is")
    skill = task if translates else as_completer(task)
    try:
        import ctranslate2  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(f"CTranslate2 needs the package {error.name}: pip install 'foveate[ctranslate2]'") from None
    write: Callable[[Any, Path], float] = _translator if translates else _language_model
    with workshop(out.parent) as temporary:
        try:
            worst = write(skill, temporary)
        except UserError:
            raise
        except Exception as error:  # the package raises errors of many kinds
            raise UserError(f"CTranslate2 cannot convert this model: {one_line(error)}") from None
        if not worst < CLOSE:
            raise UserError(f"CTranslate2's logits of this model differ by {worst:.1e}: it is not written")
        if out.exists():
            out.rmdir()
        (temporary / "model").rename(out)
    return worst


def _language_model(completer: Completer, temporary: Path) -> float:
    """By the package's own converter."""
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    model: Any = completer.model
    completer.save(temporary / "public")
    TransformersConverter(str(temporary / "public")).convert(str(temporary / "model"))
    tokens = torch.arange(TRIED)[None] % model.config.vocabulary
    names = [[str(completer.tokenizer.copy().id_to_token(token)) for token in tokens[0].tolist()]]
    generator = ctranslate2.Generator(str(temporary / "model"))
    found = np.array(generator.forward_batch(names).to_device(ctranslate2.Device.cpu))
    with torch.inference_mode():
        return float(np.abs(found - model.to("cpu")(tokens).logits.numpy()).max())


def _translator(skill: Translator, temporary: Path) -> float:
    """By a specification of our own, with the probability of each token of a target."""
    import ctranslate2

    model: Any = skill.model.to("cpu").eval()
    reads, writes = skill.processor.reads.tokenizer, skill.processor.writes.tokenizer
    sides = _names(reads, model.config.src_vocab), _names(writes, model.config.tgt_vocab)
    special = writes.special
    roles = {"eos_token": special.end, "decoder_start_token": special.start}
    roles["unk_token"] = special.unknown if "unknown" in special else special.end
    write_translator(temporary / "model", model, sides, {name: sides[1][number] for name, number in roles.items()})
    source, target = (torch.arange(TRIED) % size for size in (model.config.src_vocab, model.config.tgt_vocab))
    own = [sides[0][number] for number in source.tolist()], [sides[1][number] for number in target.tolist()]
    translator = ctranslate2.Translator(str(temporary / "model"))
    (found,) = translator.score_batch([own[0]], [own[1]])
    given = torch.cat([torch.tensor([special.start]), target])
    with torch.inference_mode():
        logits = model(source[None], torch.tensor([TRIED]), given[None]).logits[0].log_softmax(-1)
    expected = logits.gather(1, torch.cat([target, torch.tensor([special.end])])[:, None])[:, 0].numpy()
    return float(np.abs(np.array(found.log_probs) - expected).max())


def _names(tokenizer: Any, count: int) -> list[str]:
    """The name of each row of the embeddings, of which a model may have more than its tokenizer has tokens."""
    known = tokenizer.vocabulary if isinstance(tokenizer, PieceTokenizer) else tokenizer.copy().get_vocab()
    names = {number: name for name, number in known.items()}
    return [names.get(number, f"<unused {number}>") for number in range(count)]
