"""Hugging Face folders of a BERT or RoBERTa: the head that its `config.json` names decides what it is used for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate.data.text.masking import MASK
from foveate.data.tokens.bert_tokenizer import BertTokenizer
from foveate.errors import UserError
from foveate.forms.checks import check_positions
from foveate.tasks.answers.blanks import Blank, FilledText, Filling, check_blanks
from foveate.tasks.protocols import Evaluation, ModelInputs, NoOptions
from foveate.tasks.public.reader import read_bert


@dataclass
class WordFiller:
    """A BERT that predicts hidden words."""

    model: nn.Module
    tokenizer: BertTokenizer
    description: dict[str, Any]

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "WordFiller":
        """The model of a folder. Raises UserError, one line, for what is missing or damaged."""
        model, tokenizer, _ = read_bert(Path(folder), "words", device)
        return cls(model, tokenizer, {"family": "bert", "recipe": {"model": str(folder)}})

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> Filling:
        return Filling()

    @classmethod
    def eval_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    def run(self, text: str) -> FilledText:
        """The best words for each [MASK] of one text."""
        return self.answer([text], Filling())[0]

    def answer(self, texts: Sequence[str], options: Filling) -> list[FilledText]:
        """Each text with the words that fit best in place of each [MASK]; [SEP] stands between two texts."""
        options.check()
        check_blanks(texts)
        rows = [self._encode(text) for text in texts]
        check_positions(self.model, texts, enumerate(map(len, rows)), num_special_tokens=0)
        return [
            FilledText(text, self._blanks(text, row, options.best) if MASK in text else [])
            for text, row in zip(texts, rows, strict=True)
        ]

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode_question(text)

    def _blanks(self, text: str, row: list[int], best: int) -> list[Blank]:
        places = [place for place, token in enumerate(row) if token == self.tokenizer.special.mask]
        inputs = {**self._inputs(row), "places": torch.tensor([places], device=next(self.model.parameters()).device)}
        with torch.inference_mode():
            logits = self.model(**inputs).logits[0]
        return self._best(logits, best)

    def _best(self, logits: Tensor, best: int) -> list[Blank]:
        """The best words for each row of logits."""
        found, probabilities = [], logits.float().softmax(-1)
        for shares, ids in zip(*probabilities.topk(min(best, probabilities.shape[-1])), strict=True):
            words = [self.tokenizer.pieces([token])[0].removeprefix("Ġ") for token in ids.tolist()]
            found.append(Blank(words, shares.tolist()))
        return found

    def _inputs(self, row: list[int]) -> dict[str, Tensor]:
        device = next(self.model.parameters()).device
        return {
            "tokens": torch.tensor([row], device=device),
            "token_types": torch.tensor([self.tokenizer.token_types(row)], device=device),
        }

    def model_inputs(self, text: str) -> ModelInputs:
        """What the model is given to read one text, and what to call its places."""
        row = self._encode(text)
        return ModelInputs(self._inputs(row), self.tokenizer.pieces(row), len(row))

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        return []

    def picture(self, prediction: FilledText) -> None:
        """None: `foveate look` shows where it looks."""

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """UserError: its training text is not known."""
        raise UserError("a public BERT is measured by a task: train one with --from")
