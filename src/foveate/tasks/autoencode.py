"""Training an auto-encoder: prose, a tokenizer, a model, an objective and what is written again, brought together."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from torch import nn

from foveate.data import Prose, Splits
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.tasks.autoencoder import Autoencoder
from foveate.tasks.fidelity import fidelity
from foveate.tasks.prose_text import AutoencodeText
from foveate.tasks.recipe import Architecture, Recipe
from foveate.tasks.texts import spread
from foveate.training import Training, Validation


@dataclass
class Autoencode(Recipe[Architecture]):
    """Train an auto-encoder: to read a sentence, or a paragraph sentence by sentence, into a vector, and to write it
    again from that.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (text,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "autoencode"
    usual = Training(warmup=200, label_smoothing=0.0)

    examples: Annotated[AutoencodeText, tyro.conf.arg(name="")] = field(default_factory=AutoencodeText)
    model: str = "rnn-autoencoder"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/autoencode")
    """Folder for the trained model; a training that it holds is resumed."""
    decoding: Decoding = field(default_factory=lambda: Decoding(method="greedy"))


def run(recipe: Autoencode, splits: Splits[Prose] | None = None, console: Console | None = None) -> Autoencoder:
    """Train what `recipe` says, on its text or on the given `splits`, and save it in `recipe.out`.

    Raises UserError for anything in the recipe or the text that cannot work.
    """
    console = recipe.console(console)
    recipe.check()
    text = recipe.examples
    learn, check = (splits.train, splits.dev) if splits else text.open(recipe.task)
    for prose in (learn, check):
        console.print(prose.report, markup=False, highlight=False)
    tokenizer = text.tokenizer(paragraph.text for paragraph in learn)
    model = recipe.build(vocabulary=len(tokenizer))
    coder = Autoencoder(model, tokenizer, recipe.description(model), recipe.decoding)
    passages = coder.rewriting.passages(learn, text.passage_words)
    batches = coder.rewriting.training_batches(passages, text.batch_tokens, text.max_length, recipe.training.seed)
    console.print(f"{learn.name}: {batches.report}", markup=False, highlight=False)
    console.print(recipe.summary(model, f"{len(tokenizer):,} {text.tokens}"), markup=False, highlight=False)
    validation = Validation(_measure(text, coder, check), metric="tokens")
    recipe.train(model, (learn, check), batches, validation, coder.save, console)
    return coder


def _measure(text: AutoencodeText, coder: Autoencoder, check: Prose) -> Callable[[nn.Module], dict[str, float]]:
    """How faithfully passages from all over the text to validate on are written again, by greedy search."""
    fitting = coder.fitting(check)
    passages = spread(fitting, len(fitting), text.validation_passages)
    if not passages:
        raise UserError(
            f"{check.name} has nothing of at most {text.max_length} tokens to validate on: raise max_length"
        )

    def measure(model: nn.Module) -> dict[str, float]:
        written = coder.rewritten(passages, Decoding(method="greedy"))
        found = fidelity(coder.tokenizer.encode(written), [passage.text for passage in passages], coder.tokenizer)
        return {"tokens": found.tokens, "bleu": found.bleu}

    return measure
