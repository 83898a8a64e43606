"""Language models for CTranslate2 (https://github.com/OpenNMT/CTranslate2), converted by its own package and tried."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from foveate.errors import UserError, one_line
from foveate.files import workshop
from foveate.tasks.completion.exporting import as_completer

CLOSE = 1e-3
"""By how much logits may differ."""

TRIED = 7
"""Tokens of the text that a model is tried with."""


def export_to_ctranslate2(task: Any, out: Path) -> float:
    """Write the folder of a language model. Returns the greatest difference of CTranslate2's logits from PyTorch's.

    Raises UserError for another model, one that the package cannot convert or computes otherwise, and without it.
    """
    completer = as_completer(task)
    try:
        import ctranslate2
        from ctranslate2.converters import TransformersConverter
    except ModuleNotFoundError as error:
        raise UserError(f"CTranslate2 needs the package {error.name}: pip install 'foveate[ctranslate2]'") from None
    model: Any = completer.model
    with workshop(out.parent) as temporary:
        completer.save(temporary / "public")
        try:
            TransformersConverter(str(temporary / "public")).convert(str(temporary / "model"))
            tokens = torch.arange(TRIED)[None] % model.config.vocabulary
            names = [[str(completer.tokenizer.copy().id_to_token(token)) for token in tokens[0].tolist()]]
            generator = ctranslate2.Generator(str(temporary / "model"))
            found = np.array(generator.forward_batch(names).to_device(ctranslate2.Device.cpu))
        except Exception as error:  # the package raises errors of many kinds
            raise UserError(f"CTranslate2 cannot convert this model: {one_line(error)}") from None
        with torch.inference_mode():
            worst = float(np.abs(found - model.to("cpu")(tokens).logits.numpy()).max())
        if not worst < CLOSE:
            raise UserError(f"CTranslate2's logits of this model differ by {worst:.1e}: it is not written")
        if out.exists():
            out.rmdir()
        (temporary / "model").rename(out)
    return worst
