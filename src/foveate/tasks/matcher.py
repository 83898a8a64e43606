"""A trained matcher: its model, its tokenizers, and what can be done with them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.contracts import Picture, Tokenizer
from foveate.data import RIGHT, Judged, judged_pairs, match_inputs
from foveate.errors import TextError, quoted
from foveate.files import read_json
from foveate.sight import look
from foveate.tasks.match_rules import MEASURES, Rule
from foveate.tasks.measures import accuracy, macro_f1, roc_auc
from foveate.tasks.texts import pairs_to_measure_on
from foveate.tasks.trained import Evaluation, NoOptions, longest_learned, opened, said
from foveate.tasks.translator import END_SIGN, SOURCE_TOKENIZER, TARGET_TOKENIZER
from foveate.viewer import Alignment, plot_alignments

RULES = "rules.json"

QUERY = "query"
"""Stands for the learned query in pictures."""

TEST_SEED = 1
"""Of the wrong pairs that a model is measured on."""


@dataclass
class Judgement:
    """How probable it is that two texts belong together."""

    source: str
    target: str
    probability: float

    @property
    def line(self) -> str:
        """The probability and both texts, parted by tabs, ready to be sorted or filtered."""
        return f"{self.probability:.4f}\t{self.source}\t{self.target}" if self.source or self.target else ""


@dataclass
class Thresholds:
    """What `rules.json` says."""

    thresholds: dict[str, float]
    """Of each rule, by what it measures."""


@dataclass
class Matcher:
    """A model with the tokenizers that it was trained with."""

    model: nn.Module
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    rules: list[Rule]
    """What to compare the model with; fitted to the training text."""
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Matcher":
        """The matcher of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        rules = from_dict(Thresholds, read_json(found.files.path(RULES)), RULES).thresholds
        return cls(
            found.model,
            found.tokenizer(SOURCE_TOKENIZER, "src_vocab"),
            found.tokenizer(TARGET_TOKENIZER, "tgt_vocab"),
            [Rule(name, rules[name]) for name in MEASURES if name in rules],
            found.files.description,
        )

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    eval_options = run_options

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        rules = json.dumps({"thresholds": {rule.name: rule.threshold for rule in self.rules}})
        files = {
            SOURCE_TOKENIZER: self.source_tokenizer.save,
            TARGET_TOKENIZER: self.target_tokenizer.save,
            RULES: lambda path: path.write_text(rules, encoding="utf-8"),
        }
        bundle.save(folder, self.description, self.model.state_dict(), files)

    def run(self, text: str) -> Judgement:
        """Judge one pair, given as `source<TAB>target`."""
        return self.answer([text], NoOptions())[0]

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[Judgement]:
        """Judge each `source<TAB>target`. Raises TextError for one that is no pair."""
        pairs = [_pair(text, place) for place, text in enumerate(texts)]
        return [Judgement(*pair, one) for pair, one in zip(pairs, self.probabilities(pairs), strict=True)]

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """How probable it is that each pair's texts belong together; a pair with an empty text does not."""
        device = next(self.model.parameters()).device
        places = [place for place, pair in enumerate(pairs) if all(map(str.strip, pair))]
        sources = self.source_tokenizer.encode([pairs[place][0] for place in places])
        targets = self.target_tokenizer.encode([pairs[place][1] for place in places])
        found = [0.0] * len(pairs)
        for rows, inputs in match_inputs(sources, targets, self.batch_tokens):
            inputs = {name: value.to(device) for name, value in inputs.items()}
            with torch.inference_mode():
                likely = self.model(**inputs).logits.float().softmax(-1)[:, 0, RIGHT].tolist()
            for row, value in zip(rows, likely, strict=True):
                found[places[row]] = value
        return found

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """The places of pairs with more tokens on a side than any that the model was trained on."""
        limit = longest_learned(self.description)
        sources, targets = zip(*map(_pair, texts), strict=True)
        lengths = zip(self.source_tokenizer.encode(sources), self.target_tokenizer.encode(targets), strict=True)
        return [place for place, sides in enumerate(lengths) if max(map(len, sides)) > limit]

    def given(self, text: str) -> tuple[dict[str, Tensor], list[list[str]]]:
        """What the model is given for one `source<TAB>target`, and what to call the places of the source and of the
        target. Raises UserError for a text that is no pair."""
        tokenizers = self.source_tokenizer, self.target_tokenizer
        tokens = [tokenizer.encode([side])[0] for tokenizer, side in zip(tokenizers, _pair(text), strict=True)]
        ((_, inputs),) = match_inputs([tokens[0]], [tokens[1]], self.batch_tokens)
        device = next(self.model.parameters()).device
        pieces = [[*tokenizer.pieces(side), END_SIGN] for tokenizer, side in zip(tokenizers, tokens, strict=True)]
        return {name: value.to(device) for name, value in inputs.items()}, pieces

    def picture(self, prediction: Judgement) -> Picture | None:
        """Where the model looked in either text; None if it does not attend."""
        inputs, pieces = self.given(f"{prediction.source}\t{prediction.target}")
        with torch.inference_mode(), look(self.model) as sight:
            self.model(**inputs)
        looked = [sight[site].weights()[0, 0].cpu() for site in sight.sites]
        # one map for both texts where one encoder reads the same twice
        maps = [Alignment(found, [QUERY] * len(found), shown) for found, shown in zip(looked, pieces, strict=False)]
        return plot_alignments(maps, columns=1) if maps else None

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """Accuracy, macro F1 and the area under the ROC curve on the pairs of a text and as many wrong ones; beside
        rules that were fitted to the training text."""
        preset = said(self.description, "model", kind=str)
        text = pairs_to_measure_on(self.description, data, "match")
        console.print(text.report, markup=False, highlight=False)
        pairs = judged_pairs(list(text), TEST_SEED)
        own = self.probabilities([(pair.source, pair.target) for pair in pairs])
        figures = {preset: figures_of(own, 0.5, pairs)}
        figures |= {rule.name: figures_of(rule.measure(pairs), rule.threshold, pairs) for rule in self.rules}
        figures["always yes"] = figures_of([1.0] * len(pairs), 0.5, pairs)
        right = sum(pair.right for pair in pairs)
        return Evaluation(
            answers=[Judgement(pair.source, pair.target, one).line for pair, one in zip(pairs, own, strict=True)],
            figures={"pairs": len(pairs), "ways": figures},
            headings=["decides", "accuracy", "macro F1", "ROC AUC"],
            rows=[[name, *(f"{value:.1f}" for value in row.values())] for name, row in figures.items()],
            notes=[f"{right:,} right pairs, {len(pairs) - right:,} wrong ones with targets of about the same length"],
        )


def figures_of(scores: Sequence[float], threshold: float, pairs: Sequence[Judged]) -> dict[str, float]:
    """How well scores decide, where yes is a score of at least the threshold."""
    found = ["yes" if score >= threshold else "no" for score in scores]
    right = ["yes" if pair.right else "no" for pair in pairs]
    return {
        "accuracy": accuracy(found, right),
        "macro_f1": macro_f1(found, right),
        "roc_auc": roc_auc(scores, [pair.right for pair in pairs]),
    }


def _pair(text: str, place: int = 0) -> tuple[str, str]:
    """Both sides of `source<TAB>target`; an empty line is an empty pair."""
    source, *others = text.split("\t")
    if len(others) != 1 and text.strip():
        raise TextError(place, f"{quoted(text)} has {len(others)} tabs, where one tab must part two texts")
    return source.strip(), "".join(others).strip()
