"""A trained classifier: its model, its tokenizer, its labels, and what can be done with them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.contracts import Picture, Tokenizer
from foveate.data import LabelledText, open_source, text_batches
from foveate.data.labelled_batches import surroundings
from foveate.errors import printable
from foveate.files import read_json
from foveate.sight import look
from foveate.tasks.labelling import check_label_count, choose_label, evaluate_labels
from foveate.tasks.texts import to_measure_on
from foveate.tasks.trained import (
    START_SIGN,
    Evaluation,
    NoOptions,
    Reading,
    check_positions,
    longest_learned,
    opened,
    said,
)
from foveate.viewer import Alignment, plot_alignments

TOKENIZER, LABELS = "tokenizer.json", "labels.json"


@dataclass
class Decision:
    """What a classifier says about a text."""

    text: str
    label: str
    """The most probable label; empty for a text without any character to read."""
    probability: float
    """Its probability."""
    probabilities: dict[str, float] = field(default_factory=dict)
    """That of every label."""

    @property
    def line(self) -> str:
        """The label, a tab, and its probability."""
        return f"{printable(self.label)}\t{self.probability:.3f}" if self.label else ""


@dataclass
class Labels:
    """What `labels.json` says."""

    counts: dict[str, int]
    """How often each label occurs in the training text; the classes of the model in their order."""


@dataclass
class Classifier:
    """A model with the tokenizer and the labels that it was trained with."""

    model: nn.Module
    tokenizer: Tokenizer
    labels: dict[str, int]
    """The labels in the order of the model's classes, each with how often it occurs in the training text."""
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Classifier":
        """The classifier of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        labels = from_dict(Labels, read_json(found.files.path(LABELS)), LABELS).counts
        check_label_count(found.files.path(LABELS), labels, found.description.architecture["classes"])
        return cls(found.model, found.tokenizer(TOKENIZER, "vocabulary"), labels, found.files.description)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    eval_options = run_options

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""

        def write_labels(path: Path) -> None:
            path.write_text(json.dumps({"counts": self.labels}, ensure_ascii=False), encoding="utf-8")

        files = {TOKENIZER: self.tokenizer.save, LABELS: write_labels}
        bundle.save(folder, self.description, self.model.state_dict(), files)

    def run(self, text: str) -> Decision:
        """Decide about one text."""
        return self.classify([text])[0]

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[Decision]:
        return self.classify(texts)

    def classify(self, texts: Sequence[str]) -> list[Decision]:
        """Decide about many texts, in batches of like length; an empty one gets no label."""
        found = dict(self._decisions(texts))
        return [found.get(place) or Decision(text, "", 0.0) for place, text in enumerate(texts)]

    def _decisions(self, texts: Sequence[str]) -> Iterator[tuple[int, Decision]]:
        """The place of each text that is not empty, and what is decided about it."""
        device = next(self.model.parameters()).device
        places = [place for place, text in enumerate(texts) if text.strip()]
        tokens = self.tokenizer.encode([texts[place] for place in places])
        begin, end = surroundings(self.tokenizer)
        check_positions(self.model, texts, zip(places, map(len, tokens), strict=True), len(begin) + len(end))
        for rows, inputs in text_batches(tokens, self.batch_tokens, begin, end):
            with torch.inference_mode():
                logits = self.model(**{name: value.to(device) for name, value in inputs.items()}).logits
            for row, shares in zip(rows, logits[:, 0].float().softmax(-1).tolist(), strict=True):
                yield places[row], Decision(texts[places[row]], *choose_label(self.labels, shares))

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """The places of texts with more tokens than any that the model was trained on."""
        limit = longest_learned(self.description)
        lengths = map(len, self.tokenizer.encode(list(texts)))
        return [place for place, length in enumerate(lengths) if length > limit]

    def reading(self, text: str) -> Reading:
        """What the model is given to read one text, and what to call its places."""
        (tokens,) = self.tokenizer.encode([text])
        begin, end = surroundings(self.tokenizer)
        ids = [*begin, *tokens, *end]
        device = next(self.model.parameters()).device
        inputs: dict[str, Tensor] = {
            "tokens": torch.tensor([ids], device=device),
            "lengths": torch.tensor([len(ids)], device=device),
        }
        pieces = self.tokenizer.pieces(ids) if end else [START_SIGN, *self.tokenizer.pieces(tokens)]
        return Reading(inputs, pieces, len(pieces))

    def picture(self, prediction: Decision) -> Picture | None:
        """Where the model looked in a text when it decided, as one row; None if it does not attend.

        That is the last site: the pooling, or the last layer of an encoder whose first place (or mean) decides.
        """
        reading = self.reading(prediction.text)
        with torch.inference_mode(), look(self.model) as sight:
            self.model(**reading.inputs)
        if not sight.sites:
            return None
        site = sight.sites[-1]
        heads = sight[site].weights()[0]
        weights = heads.mean(0)
        rows = weights[:1] if getattr(self.model.config, "pooling", None) == "first" else weights.mean(0, keepdim=True)
        title = site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads"
        label = f"{prediction.label} {prediction.probability:.2f}"
        return plot_alignments([Alignment(rows.cpu(), [label], reading.pieces, title)])

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """Accuracy and macro F1, beside always giving the most frequent label of the training text."""
        source = said(self.description, "examples", "source", kind=str | None)
        preset = said(self.description, "model", kind=str)
        text = to_measure_on(
            source, data, lambda: open_source(source, task="classify"), LabelledText.from_paths, "FILE"
        )
        console.print(text.report, markup=False, highlight=False)
        texts, right = list(text.texts()), list(text.labels())
        decisions = self.classify(texts)
        return evaluate_labels(preset, self.labels, decisions, right, "texts")
