"""Pairs: two texts, read together by one encoder, get one of several labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate.baselines.match_rules import MEASURES, fit
from foveate.data import TRAINERS, Judged
from foveate.data.dataset import Dataset
from foveate.data.text.labelled_pairs import (
    LabelledPair,
    LabelledPairProcessor,
    PairRule,
    count_pair_labels,
    read_labelled_pairs,
)
from foveate.errors import UserError, at_least
from foveate.forms.checks import check_positions, unseen_labels
from foveate.forms.label import check_labels, choose_label, label_baseline, label_metrics
from foveate.tasks.answers.label_texts import Decision, plot_decision
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.examples.pair_text import split_pair
from foveate.tasks.examples.text_task import TextExamples, TextTask, longest_first
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import ModelInputs, NoOptions
from foveate.tasks.start.parts import FromLanguageModel, LanguageModel
from foveate.viewer.protocol import Input, LookResult

FITTED_TO = 10_000
"""Pairs from all over the training text that the rules beside the model are fitted to, at most."""


@dataclass
class Pairs(TextExamples):
    """Which pairs to learn from."""

    data: tuple[Path, ...] = ()
    """Your own text: a file with label<TAB>first text<TAB>second text on each line; plain or .gz."""
    validation: tuple[Path, ...] = ()
    """A file to validate on, likewise. Without it, up to 1,000 pairs of the data are held out."""
    vocabulary: int = 8000
    """How many subwords to learn, at most, where there are no trained weights."""
    lowercase: bool = True
    """Read lower case only, where there are no trained weights."""
    batch_tokens: int = 2048
    """Tokens of a batch, padding included."""
    max_length: int = 256
    """Pairs with more tokens than this in both texts together are left out (and counted)."""
    validation_pairs: int = 1000
    """Pairs that each validation during training decides about."""

    @property
    def validation_examples(self) -> int:
        return self.validation_pairs

    def check(self) -> None:
        check_vocabulary(self.vocabulary)
        super().check()
        at_least(1, "validation_pairs", self.validation_pairs)


@dataclass
class Pair(TextTask[Architecture]):
    """Train a BERT that gives two texts, read together, one of several labels: whether the second follows the first.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "pair"
    unit = "pairs"
    processor = LabelledPairProcessor
    start_parts = LanguageModel()
    default_training = Training(
        usual_epochs=5, learning_rate=1e-3, schedule="linear", usual_warmup=100, label_smoothing=0.0, validate_every=100
    )

    examples: Annotated[Pairs, tyro.conf.arg(name="")] = field(default_factory=Pairs)
    model: str = "bert-mini"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/pair")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromLanguageModel = None

    def read(self, paths: Sequence[Path]) -> Dataset[LabelledPair]:
        return read_labelled_pairs(paths)

    def key(self, example: LabelledPair) -> str:
        return example.first

    def check_examples(self, train: Any, validation: Any) -> None:
        check_labels(train.name, [*count_pair_labels(train)], validation.name, [*count_pair_labels(validation)], "pair")

    def fit(self, train: Dataset[LabelledPair]) -> LabelledPairProcessor:
        chosen, architecture = self.examples, self.architecture
        texts = (text for pair in train for text in (pair.first, pair.second))
        tokenizer = self.trained_tokenizer() or TRAINERS["subwords"](texts, chosen.vocabulary, chosen.lowercase)
        segments = getattr(architecture, "token_types", 1) > 1
        return LabelledPairProcessor(tokenizer, count_pair_labels(train), segments, fit_rules(train))

    def lengths(self, processor: LabelledPairProcessor, examples: Iterable[LabelledPair]) -> list[int]:
        """The tokens of both texts together."""
        pairs = processor.encode([(example.first, example.second) for example in examples])
        return [len(first) + len(second) for first, second in pairs]

    def positions(self, processor: LabelledPairProcessor, examples: Iterable[LabelledPair]) -> list[int]:
        return [processor.num_special_tokens + length for length in self.lengths(processor, examples)]

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Decision]:
        """The decision about each `first<TAB>second`; a pair with an empty text gets no label.

        Raises TextError for one that is no pair or too long to read.
        """
        processor: LabelledPairProcessor = predictor.processor
        pairs = [split_pair(text, place) for place, text in enumerate(texts)]
        places = [place for place, pair in enumerate(pairs) if all(pair)]
        tokens = processor.encode([pairs[place] for place in places])
        lengths = [len(first) + len(second) for first, second in tokens]
        check_positions(predictor.model, texts, zip(places, lengths, strict=True), processor.num_special_tokens)
        found = [Decision(text, "", 0.0) for text in texts]
        for rows in longest_first([processor.num_special_tokens + length for length in lengths]):
            logits = predictor.forward(processor.inputs([tokens[row] for row in rows])).logits[:, 0]
            for row, shares in zip(rows, logits.float().softmax(-1).tolist(), strict=True):
                place = places[row]
                found[place] = Decision(texts[place], *choose_label(processor.labels, shares))
        return found

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        tokens = predictor.processor.encode([split_pair(text, place) for place, text in enumerate(texts)])
        lengths = enumerate(len(first) + len(second) for first, second in tokens)
        return [place for place, length in lengths if length > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[LabelledPair], options: NoOptions) -> Measured:
        """Accuracy and macro F1."""
        found = self.answer(predictor, [f"{example.first}\t{example.second}" for example in examples], options)
        metrics = label_metrics([one.label for one in found], [example.label for example in examples])
        return Measured([one.line for one in found], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[LabelledPair], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        """Rules that were fitted to the training text, where there are two labels, and the most frequent label."""
        right, ways = [example.label for example in examples], {}
        for name, rule in predictor.processor.rules.items():
            values = (MEASURES[name](example.first, example.second) for example in examples)
            found = [rule.above if value >= rule.threshold else rule.below for value in values]
            ways[name] = label_metrics(found, right)
        return {**ways, **label_baseline(predictor.processor.labels, right)}

    def notes(self, predictor: Predictor, examples: Sequence[LabelledPair]) -> list[str]:
        labels = predictor.processor.labels
        return [f"{len(labels)} labels", *unseen_labels("labels", [example.label for example in examples], labels)]

    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        processor: LabelledPairProcessor = predictor.processor
        (pair,) = processor.encode([split_pair(text)])
        row, _ = processor.join(pair)
        return ModelInputs(predictor.on_device(processor.inputs([pair])), processor.tokenizer.pieces(row), len(row))

    def picture(self, predictor: Predictor, prediction: Decision) -> Any:
        return plot_decision(predictor.model, self.model_inputs(predictor, prediction.text), prediction)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        """A look at both texts, given as `first<TAB>second` or as two lines."""
        if isinstance(given, str) and given.strip():
            lines = [line for line in given.splitlines() if line.strip()]
            text = "\t".join(lines)
            if text.count("\t") != 1:
                raise UserError(f"{predictor.name} reads two texts: separate them by a newline or a tab")
            given = text
        return super().look(predictor, given, max_length, sites)


def fit_rules(train: Dataset[LabelledPair]) -> dict[str, PairRule]:
    """Of each measure the threshold that parts the two labels best; nothing where there are more labels."""
    labels = [*count_pair_labels(train)]
    if len(labels) != 2:
        return {}
    some, rules = train.some(FITTED_TO), {}
    for name, measure in MEASURES.items():
        tried = []
        for above, below in (labels, labels[::-1]):
            pairs = [Judged(pair.first, pair.second, pair.label == above) for pair in some]
            threshold = fit(name, pairs).threshold
            hits = sum((measure(pair.source, pair.target) >= threshold) == pair.right for pair in pairs)
            tried.append((hits, PairRule(threshold, above, below)))
        rules[name] = max(tried, key=lambda one: one[0])[1]
    return rules
