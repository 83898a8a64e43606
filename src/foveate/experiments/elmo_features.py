"""ELMo's vectors as features of a classifier: the same classifier with and without them (Peters et al. 2018, section
3.3, https://arxiv.org/abs/1802.05365)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from rich.console import Console
from torch import Tensor, nn

from foveate import tasks
from foveate.contracts import Tokenizer
from foveate.data.ragged import padded, within_budget
from foveate.data.sources import open_source
from foveate.data.sources.splits import Splits
from foveate.data.text.labelled import LabelledText
from foveate.data.text.neighbours import BothWays
from foveate.data.tokens.characters import OpenVocabulary
from foveate.data.tokens.tokenizers import train_words
from foveate.errors import UserError, at_least
from foveate.experiments.comparison import Comparison, Options, Table
from foveate.models.text.elmo import Elmo, LayerMix
from foveate.nn import Dropout, Recurrent, pooling, word_vectors
from foveate.special_tokens import LEARNED

BUDGET = 2048
"""Words of a batch, padding included."""

WAYS = {"words": (True, False), "words and ELMo": (True, True), "ELMo": (False, True)}
"""What the classifier reads, by name: word vectors of its own, and those of ELMo."""


@dataclass
class ElmoFeatures(Options):
    """Train a classifier of texts on word vectors of its own, on those of a trained ELMo, and on both."""

    run: Path = Path("runs/elmo")
    """Folder of an ELMo that `foveate train cloze` trained."""
    source: str = "movie-sentiment"
    """Labelled texts by name: see `foveate data`."""
    vocabulary: int = 8000
    """Words that get a vector of the classifier's own, at most."""
    epochs: int = 5
    """Passes over the texts."""
    learning_rate: float = 2e-3
    """Learning rate at the beginning; it falls to 0."""


OPTIONS = ElmoFeatures


@dataclass
class Part:
    """The texts of one side, as numbers."""

    tokens: list[np.ndarray]
    """Words of the classifier's own vocabulary, between start and end."""
    layers: list[Tensor]
    """ELMo's layers of the same words, (L, T, C) each, in half precision."""
    labels: np.ndarray

    def batches(self, generator: np.random.Generator | None) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """Places of texts and the classifier's inputs; shuffled by a generator, if there is one."""
        lengths = np.array([len(row) for row in self.tokens])
        order = np.arange(len(lengths)) if generator is None else generator.permutation(len(lengths))
        groups = within_budget(order[np.argsort(lengths[order], kind="stable")], lengths, BUDGET)
        for group in groups if generator is None else [groups[at] for at in generator.permutation(len(groups))]:
            tokens, counts = padded([self.tokens[row] for row in group], LEARNED.pad)
            parts = [self.layers[row].transpose(0, 1) for row in group]
            layers = nn.utils.rnn.pad_sequence(parts, batch_first=True).permute(2, 0, 1, 3).float()
            yield group, {"tokens": tokens, "lengths": counts, "layers": layers}


class FeatureClassifier(nn.Module):
    """The attentive classifier of Yang et al. 2016 over word vectors, ELMo's vectors, or both side by side."""

    def __init__(self, vocabulary: int, classes: int, layers: int, width: int, words: bool, elmo: bool) -> None:
        super().__init__()
        self.words = word_vectors(vocabulary, 200) if words else None
        self.mix = LayerMix(layers) if elmo else None
        self.dropout = Dropout(0.5)
        self.recurrent = Recurrent("gru", 200 * words + width * elmo, 100, bidirectional=True)
        self.pooling = pooling("attention", 100)
        self.output = nn.Linear(100, classes)

    def forward(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"], layers: Float[Tensor, "L B T C"]
    ) -> Float[Tensor, "B N"]:
        parts = [] if self.words is None else [self.words(tokens)]
        parts += [] if self.mix is None else [self.mix(layers)]
        encoded, _ = self.recurrent(self.dropout(torch.cat(parts, -1)), lengths=lengths)
        return self.output(self.dropout(self.pooling(encoded, lengths)))


def run(options: ElmoFeatures, console: Console) -> Comparison:
    """Accuracy on the test part of each way, of the epoch that was best on the validation part."""
    at_least(1, "epochs", options.epochs)
    predictor = tasks.load(options.run)
    if not isinstance(predictor.model, Elmo):
        raise UserError(f"{options.run} holds no ELMo: train one by foveate train cloze --model elmo-tiny")
    splits: Splits[LabelledText] = open_source(options.source, task="classify")
    tokenizer = train_words(splits.train.texts(), options.vocabulary, lowercase=True)
    names = [*splits.train.check().labels]
    parts = [
        _read(side, names, tokenizer, predictor.model, predictor.processor.reads.tokenizer)
        for side in (splits.train, splits.dev, splits.test)
    ]
    table, raw = Table(["the classifier reads", "accuracy", "on the validation part"]), dict[str, Any]()
    for way, reads in WAYS.items():
        torch.manual_seed(options.seed)
        sizes = parts[0].layers[0].shape
        model = FeatureClassifier(len(tokenizer), len(names), sizes[0], sizes[2], *reads)
        validation, test = _train(model, parts, options)
        raw[way] = {"accuracy": test, "validation": validation}
        if model.mix is not None:
            raw[way]["layers"] = model.mix.weights.softmax(0).tolist()
        table.rows.append([way, f"{test:.1f}", f"{validation:.1f}"])
        console.print(f"{way}: {test:.1f}", markup=False, highlight=False)
    return Comparison("ELMo's vectors as features of a classifier", [table], {}, raw)


def _read(text: LabelledText, names: Sequence[str], words: Tokenizer, model: Elmo, elmo_words: OpenVocabulary) -> Part:
    """The texts cut into ELMo's words; the classifier's vocabulary has the same cuts."""
    texts, labels = [example.text for example in text], np.array([names.index(example.label) for example in text])
    own, others = (
        [np.array([LEARNED.start, *row, LEARNED.end]) for row in tokenizer.encode(texts)]
        for tokenizer in (words, elmo_words)
    )
    layers: list[Any] = [None] * len(texts)
    lengths = np.array([len(row) for row in others])
    way = BothWays(elmo_words)
    for group in within_budget(np.argsort(lengths), lengths, BUDGET):
        inputs = way.hide([others[row] for row in group], None).inputs
        with torch.inference_mode():
            states = model.layers(**inputs)
        for index, row in enumerate(group):
            layers[row] = states[:, index, : lengths[row]].half().clone()
    return Part(own, layers, labels)


def _train(model: FeatureClassifier, parts: Sequence[Part], options: ElmoFeatures) -> tuple[float, float]:
    """Learn from the first part. The best accuracy on the second, and that on the third after the same epoch, in
    percent."""
    train, validation, test = parts
    optimizer = torch.optim.AdamW(model.parameters(), options.learning_rate)
    generator = np.random.default_rng(options.seed)
    steps = options.epochs * sum(1 for _ in within_budget(*_sort_by_length(train), BUDGET))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-3, steps)
    accuracies = []
    for _ in range(options.epochs):
        model.train()
        for group, inputs in train.batches(generator):
            loss = F.cross_entropy(model(**inputs), torch.from_numpy(train.labels[group]))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        accuracies.append((_accuracy(model, validation), _accuracy(model, test)))
    return max(accuracies, key=lambda pair: pair[0])


def _sort_by_length(part: Part) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(row) for row in part.tokens])
    return np.argsort(lengths), lengths


def _accuracy(model: FeatureClassifier, part: Part) -> float:
    model.eval()
    with torch.inference_mode():
        right = sum(int((model(**x).argmax(-1).numpy() == part.labels[at]).sum()) for at, x in part.batches(None))
    return 100 * right / len(part.labels)
