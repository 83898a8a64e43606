"""What a Hugging Face folder that is written again takes of the one that it was read from."""

import shutil
from pathlib import Path
from typing import Any

from torch import nn

from foveate import run_dir
from foveate.files import read_json
from foveate.interop.public_folder import layout_for

TOKENIZERS = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("target_vocab.json", "merges.txt", "source.spm", "target.spm", "spiece.model", "sentencepiece.bpe.model"),
    *("vocab.txt", "spm.model"),
)
"""Files of a folder that its tokenizer is made from."""


def fields_left(source: Path, family: str, model: nn.Module) -> dict[str, Any]:
    """The fields of a folder's `config.json` that our config does not say, its class among them."""
    values = read_json(source / run_dir.CONFIG)
    config: Any = model.config
    ours = layout_for(family, config).write_config(config).keys() - {"model_type", "architectures"}
    return {name: values[name] for name in values.keys() - ours}


def copy_files(source: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Copy the files that there are."""
    for name in names:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
