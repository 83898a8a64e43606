"""Tagging: each word of a sentence gets a tag, such as its part of speech."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from foveate.data import TRAINERS, Lexicon
from foveate.data.dataset import Dataset
from foveate.data.text.scripts import split_words
from foveate.data.text.tag_processor import PieceTagProcessor, TagProcessor
from foveate.data.text.tagged import Tagged, tagged_text
from foveate.errors import at_least, one_line
from foveate.forms.checks import check_positions, unseen_labels
from foveate.metrics.classification import accuracy, macro_f1
from foveate.sight import look
from foveate.tasks.examples.text_task import READ_AROUND, TextExamples, TextTask, longest_first
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import ModelInputs, NoOptions
from foveate.tasks.start.parts import FromLanguageModel, LanguageModel
from foveate.viewer import Alignment, plot_alignments

PIECES = 8000
"""Pieces of words that a BERT learns, at most, where there are no trained weights."""


@dataclass
class Text(TextExamples):
    """Which tagged sentences to learn from."""

    data: tuple[Path, ...] = ()
    """Your own text: a file with word<TAB>tag on each line and an empty line between sentences; plain or .gz."""
    validation: tuple[Path, ...] = ()
    """A file to validate on, likewise. Without it, up to 1,000 sentences of the data are held out."""
    batch_tokens: int = 2048
    """Words of a batch, padding included."""
    max_length: int = 128
    """Sentences with more words than this are left out (and counted)."""
    validation_sentences: int = 1000
    """Sentences that each validation during training tags."""

    @property
    def validation_examples(self) -> int:
        return self.validation_sentences

    def check(self) -> None:
        super().check()
        at_least(1, "validation_sentences", self.validation_sentences)


@dataclass
class Tagging:
    """A sentence's words and the tag of each."""

    words: Sequence[str]
    tags: Sequence[str]

    @property
    def line(self) -> str:
        """Like "The/DET boat/NOUN ./PUNCT"."""
        return " ".join(f"{word}/{one_line(tag)}" for word, tag in zip(self.words, self.tags, strict=True))


@dataclass
class Tag(TextTask[Architecture]):
    """Train a tagger, which gives each word of a sentence a tag, such as its part of speech.

    A BERT reads a word by its pieces, and the first one gives the tag.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "tag"
    num_special_tokens = 0
    unit = "words"
    tokens_name = "words"
    processor = TagProcessor
    start_parts = LanguageModel()
    default_training = Training(
        usual_epochs=5, learning_rate=3e-3, schedule="cosine", usual_warmup=200, label_smoothing=0.0, validate_every=250
    )

    examples: Annotated[Text, tyro.conf.arg(name="")] = field(default_factory=Text)
    model: str = "birnn-transformer-tagger"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/tag")
    """Folder for the trained model; a training that it holds is resumed."""
    start: FromLanguageModel = None

    def read(self, paths: Sequence[Path]) -> Dataset[Tagged]:
        return tagged_text(paths)

    def key(self, example: Tagged) -> str:
        return " ".join(example.words)

    def lengths(self, processor: TagProcessor, examples: Iterable[Tagged]) -> list[int]:
        return [len(sentence.words) for sentence in examples]

    def positions(self, processor: TagProcessor, examples: Iterable[Tagged]) -> list[int]:
        return processor.positions([sentence.words for sentence in examples])

    def fit(self, train: Dataset[Tagged]) -> TagProcessor:
        lexicon = Lexicon.learn(train)
        if self.preset.family not in READ_AROUND:
            return TagProcessor(lexicon)
        texts = map(self.key, train)
        return PieceTagProcessor(lexicon, self.trained_tokenizer() or TRAINERS["subwords"](texts, PIECES, False))

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Tagging]:
        """The tags of sentences whose words (punctuation marks too) are parted by spaces; none for an empty one."""
        return self.tag(predictor, [split_words(text) for text in texts])

    def tag(self, predictor: Predictor, sentences: Sequence[Sequence[str]]) -> list[Tagging]:
        """The tags of sentences of words."""
        lengths, positions = list(map(len, sentences)), predictor.processor.positions(sentences)
        taken = [(place, count) for place, count in enumerate(positions) if lengths[place]]
        check_positions(predictor.model, list(map(" ".join, sentences)), taken, num_special_tokens=0)
        tags, names = [list[str]() for _ in sentences], predictor.processor.lexicon.tags
        for places in longest_first(lengths):
            inputs = predictor.processor.inputs([sentences[place] for place in places])
            best = predictor.forward(inputs).logits.argmax(-1).tolist()
            for place, numbers in zip(places, best, strict=True):
                tags[place] = [names[number] for number in numbers[: lengths[place]]]
        return [Tagging(*each) for each in zip(sentences, tags, strict=True)]

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        return [place for place, text in enumerate(texts) if len(split_words(text)) > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[Tagged], options: NoOptions) -> Measured:
        """Accuracy, over all words and over those that the training text does not have, and macro F1."""
        found = self.tag(predictor, [sentence.words for sentence in examples])
        tags = [tag for tagging in found for tag in tagging.tags]
        return Measured([tagging.line for tagging in found], _metrics(predictor.processor.lexicon, tags, examples))

    def baselines(
        self, predictor: Predictor, examples: Sequence[Tagged], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        """A tagger that knows each word's most frequent tag, and the most frequent tag of all."""
        lexicon = predictor.processor.lexicon
        words = [word for sentence in examples for word in sentence.words]
        ways = {
            "each word's most frequent tag": [lexicon.words.get(word, lexicon.tag_of_unknown) for word in words],
            f"always {lexicon.tags[0]}": [lexicon.tags[0]] * len(words),
        }
        return {name: _metrics(lexicon, tags, examples) for name, tags in ways.items()}

    def notes(self, predictor: Predictor, examples: Sequence[Tagged]) -> list[str]:
        lexicon = predictor.processor.lexicon
        right = [tag for sentence in examples for tag in sentence.tags]
        unknown = len(_unknown_words(lexicon, examples))
        return [
            f"{len(right):,} words, {len(set(right))} tags; {unknown:,} unknown words, which the training text lacks",
            *unseen_labels("tags", right, lexicon.tags),
        ]

    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        words, processor = split_words(text), predictor.processor
        inputs = processor.inputs([words])
        if isinstance(processor, PieceTagProcessor):
            words = processor.tokenizer.pieces(inputs["tokens"][0].tolist())
        return ModelInputs(predictor.on_device(inputs), words, len(words))

    def picture(self, predictor: Predictor, prediction: Tagging) -> Any:
        """Where each word looked, in the layer that looks most decidedly."""
        reading = self.model_inputs(predictor, " ".join(prediction.words))
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.model(**reading.inputs)
        maps = {site: sight[site].weights()[0].mean(0).cpu() for site in sight.sites}
        if not maps:
            return None
        if (places := reading.inputs.get("places")) is not None:
            maps = {site: weights[places[0].cpu()] for site, weights in maps.items()}
        site, weights = max(maps.items(), key=lambda found: float(found[1].amax(-1).mean()))
        tagged = [f"{word}/{one_line(tag)}" for word, tag in zip(prediction.words, prediction.tags, strict=True)]
        return plot_alignments([Alignment(weights, tagged, reading.pieces, f"{site}, mean of its heads")])


def _unknown_words(lexicon: Lexicon, examples: Sequence[Tagged]) -> list[int]:
    words = (word for sentence in examples for word in sentence.words)
    return [place for place, word in enumerate(words) if word not in lexicon.words]


def _metrics(lexicon: Lexicon, tags: Sequence[str], examples: Sequence[Tagged]) -> dict[str, float]:
    """How good tags are; without unknown words nothing is said of them."""
    right, unknown = [tag for sentence in examples for tag in sentence.tags], _unknown_words(lexicon, examples)
    found = {"accuracy": accuracy(tags, right)}
    if unknown:
        found["accuracy_unknown"] = accuracy([tags[place] for place in unknown], [right[place] for place in unknown])
    return {**found, "macro_f1": macro_f1(tags, right)}
