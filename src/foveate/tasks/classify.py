"""Classification: a whole text gets one of several labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from foveate.data import TRAINERS, Labelled, LabelledText, Tokens
from foveate.data.dataset import Dataset
from foveate.data.text.batches import surroundings
from foveate.data.text.label_processor import TextLabelProcessor
from foveate.errors import at_least
from foveate.forms.checks import unseen_labels
from foveate.tasks.answers.label_texts import Decision, label_texts, plot_decision, read_whole_text
from foveate.tasks.answers.labelling import check_labels, label_baseline, label_metrics
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.examples.text_task import TextExamples, TextTask
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import ModelInputs, NoOptions
from foveate.tasks.start.parts import FromLanguageModel, LanguageModel
from foveate.training import Batches

FEW = 1000
"""Where there are fewer texts, a network from nothing is hardly better than guessing (docs/small-data.md)."""


@dataclass
class Text(TextExamples):
    """Which texts to learn from, and how they become tokens."""

    data: tuple[Path, ...] = ()
    """Your own text: a file with label<TAB>text on each line; plain or .gz."""
    validation: tuple[Path, ...] = ()
    """A file to validate on, likewise. Without it, up to 1,000 texts of the data are held out."""
    tokens: Tokens = "words"
    """What a text is cut into."""
    vocabulary: int = 8000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read lower case only."""
    batch_tokens: int = 2048
    """Tokens of a batch, padding included."""
    max_length: int = 512
    """Texts with more tokens than this are left out (and counted)."""
    validation_texts: int = 2000
    """Texts that each validation during training decides about."""

    @property
    def validation_examples(self) -> int:
        return self.validation_texts

    def check(self) -> None:
        check_vocabulary(self.vocabulary)
        super().check()
        at_least(1, "validation_texts", self.validation_texts)


@dataclass
class Classify(TextTask[Architecture]):
    """Train a classifier, which gives a whole text one of several labels.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "classify"
    unit = "texts"
    processor = TextLabelProcessor
    start_parts = LanguageModel()
    default_training = Training(
        usual_epochs=5,
        learning_rate=2e-3,
        schedule="linear",
        usual_warmup=100,
        label_smoothing=0.0,
        validate_every=50,
        save_every=50,
    )

    examples: Annotated[Text, tyro.conf.arg(name="")] = field(default_factory=Text)
    model: str = "rnn-attentive-classifier"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/classify")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromLanguageModel = None

    def read(self, paths: Sequence[Path]) -> LabelledText:
        return LabelledText.from_paths(paths)

    def key(self, example: Labelled) -> str:
        return example.text

    def lengths(self, processor: TextLabelProcessor, examples: Iterable[Labelled]) -> list[int]:
        return [len(tokens) for tokens in processor.tokenizer.encode([example.text for example in examples])]

    def positions(self, processor: TextLabelProcessor, examples: Iterable[Labelled]) -> list[int]:
        around = sum(map(len, surroundings(processor.tokenizer)))
        return [around + length for length in self.lengths(processor, examples)]

    def hold_out(self, train: Any, every: int) -> tuple[Dataset[Any], Dataset[Any]]:
        return train.held_out(every)

    def check_examples(self, train: Any, validation: Any) -> None:
        check_labels(train.name, [*train.labels()], validation.name, [*validation.labels()], "text")

    def advice(self, train: Any) -> list[str]:
        """Where texts are few and nothing is known of words: trained weights, which know them."""
        if self.start is not None or len(train) >= FEW:
            return []
        return [f"{len(train):,} texts are few to learn words from; English ones are better learned --from minilm"]

    def fit(self, train: Any) -> TextLabelProcessor:
        chosen = self.examples
        trained = self.trained_tokenizer()
        tokenizer = trained or TRAINERS[chosen.tokens](train.texts(), chosen.vocabulary, chosen.lowercase)
        return TextLabelProcessor(tokenizer, train.check().labels, chosen.tokens)

    def batches(self, train: Any, processor: TextLabelProcessor) -> Batches:
        """Of the texts with at most `max_length` tokens. Raises UserError where there is none."""
        kept, read = processor.encode(train, self.examples.max_length)
        return self.bucketed(kept, read, processor, f"{self.examples.max_length:,} tokens")

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Decision]:
        """The decision about each text; an empty one gets no label."""
        processor: TextLabelProcessor = predictor.processor
        return label_texts(predictor.model, processor.tokenizer, processor.labels, texts)

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        lengths = enumerate(map(len, predictor.processor.tokenizer.encode(list(texts))))
        return [place for place, length in lengths if length > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[Labelled], options: NoOptions) -> Measured:
        """Accuracy and macro F1."""
        found = self.answer(predictor, [example.text for example in examples], options)
        metrics = label_metrics([one.label for one in found], [example.label for example in examples])
        return Measured([one.line for one in found], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[Labelled], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        return label_baseline(predictor.processor.labels, [example.label for example in examples])

    def notes(self, predictor: Predictor, examples: Sequence[Labelled]) -> list[str]:
        labels = predictor.processor.labels
        return [f"{len(labels)} labels", *unseen_labels("labels", [example.label for example in examples], labels)]

    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        return read_whole_text(predictor.model, predictor.processor.tokenizer, text)

    def picture(self, predictor: Predictor, prediction: Decision) -> Any:
        return plot_decision(predictor.model, self.model_inputs(predictor, prediction.text), prediction)
