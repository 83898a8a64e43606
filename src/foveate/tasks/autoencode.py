"""Auto-encoding: a sentence, or a paragraph sentence by sentence, is read into a vector and written again from it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from jaxtyping import Float
from torch import Tensor

from foveate.baselines.nearest import nearest, nearest_by_words
from foveate.config import from_dict
from foveate.data import Passage, Prose, Splits, open_source
from foveate.data.dataset import Dataset
from foveate.data.tokens.tokenizer_processor import TokenizerProcessor
from foveate.decoding import Decoding
from foveate.errors import UserError, at_least
from foveate.metrics.reconstruction import fidelity
from foveate.sight import look
from foveate.tasks.answers.reconstruction import REWRITINGS, Rewriting
from foveate.tasks.answers.text_vectors import passage_of, rewrite, vectors_of
from foveate.tasks.examples.data_options import subsample
from foveate.tasks.examples.prose_text import FILES, AutoencodeText
from foveate.tasks.examples.text_task import TextTask
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import END_SIGN, ModelInputs, Writing
from foveate.tasks.run_folder import check_unchanged
from foveate.training import Batches
from foveate.viewer import Alignment, plot_alignments

NAMED = 3
"""So many words stand for a sentence in pictures."""


@dataclass
class Answering(Writing):
    """What `foveate run` has an auto-encoder tell of each text."""

    show: Literal["text", "vector", "neighbours"] = "text"
    """The text as it is written again, its vector (numbers parted by tabs), or the nearest texts that the model learned
    from (by the cosine of the vectors, which stands before each)."""
    neighbours: int = 3
    """How many of the nearest texts."""


@dataclass
class Measuring(Writing):
    """How `foveate eval` measures an auto-encoder."""

    examples: int = 500
    """Measure at most so many sentences or passages, from all over the text."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        at_least(1, "examples", self.examples)


@dataclass
class Answer:
    """What was told of a text."""

    text: str
    line: str


@dataclass
class Autoencode(TextTask[Architecture]):
    """Train an auto-encoder: to read a sentence, or a paragraph sentence by sentence, into a vector, and to write it
    again from that.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "autoencode"
    metric = "tokens"
    files = FILES
    processor = TokenizerProcessor
    options = Answering
    default_training = Training(warmup=200, label_smoothing=0.0)

    examples: Annotated[AutoencodeText, tyro.conf.arg(name="")] = field(default_factory=AutoencodeText)
    model: str = "rnn-autoencoder"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/autoencode")
    """Folder for the trained model; a training that it holds is resumed."""
    decoding: Decoding = field(default_factory=lambda: Decoding(method="greedy"))

    @classmethod
    def run_options(cls, recipe: Mapping[str, Any], where: str) -> Answering:
        return Answering(decoding=from_dict(Decoding, recipe.get("decoding", {}), where))

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Measuring:
        return Measuring(decoding=cls.run_options(recipe, where).decoding)

    def rewriting(self, processor: TokenizerProcessor) -> Rewriting:
        """How the model reads and writes."""
        return REWRITINGS[self.preset.family](processor.tokenizer)

    def passages(self, prose: Prose) -> Dataset[Passage]:
        """What of the prose is read into one vector each."""
        words = self.examples.passage_words
        found = list(REWRITINGS[self.preset.family].passages(prose, words))
        if not found:
            raise UserError(f"{prose.name}: there is no text in it")
        return Dataset(prose.name, found, "passages", [f"{sum(len(one.text.split()) for one in found):,} words"])

    def read(self, paths: Sequence[Path]) -> Dataset[Passage]:
        return self.passages(Prose.from_paths(paths))

    def open_source(self, name: str) -> Splits[Any]:
        splits = open_source(name, task=self.task)
        return Splits(*map(self.passages, (splits.train, splits.dev, splits.test)))

    def key(self, example: Passage) -> str:
        return example.text

    def lengths(self, processor: TokenizerProcessor, examples: Iterable[Passage]) -> list[int]:
        return self.rewriting(processor).lengths(list(examples))

    def fit(self, train: Dataset[Passage]) -> TokenizerProcessor:
        chosen = self.examples
        return TokenizerProcessor(chosen.tokenizer(passage.text for passage in train), chosen.tokens)

    def batches(self, train: Dataset[Passage], processor: TokenizerProcessor) -> Batches:
        """Of the passages with at most `max_length` tokens in a row. Raises UserError where there is none."""
        most, rewriting = self.examples.max_length, self.rewriting(processor)
        kept = Dataset(train.name, rewriting.encode(train, most), train.unit)
        return self.bucketed(kept, len(train), rewriting, f"{most:,} tokens")

    def fitting(self, predictor: Predictor, passages: Sequence[Passage]) -> list[Passage]:
        """The passages that are not longer than those the model learns from."""
        lengths = self.lengths(predictor.processor, passages)
        return [one for one, length in zip(passages, lengths, strict=True) if length <= self.examples.max_length]

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Answering) -> list[Answer]:
        """What the options ask for, of each text; nothing of an empty one."""
        options.check()
        passages = [passage_of(text) for text in texts if text.strip()]
        lines = iter(self._lines(predictor, passages, options) if passages else [])
        return [Answer(text, next(lines) if text.strip() else "") for text in texts]

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        lengths = enumerate(self.lengths(predictor.processor, map(passage_of, texts)))
        return [place for place, length in lengths if length > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[Passage], options: Measuring) -> Measured:
        """What is written again faithfully."""
        passages = self._measured(predictor, examples, options)
        written = rewrite(predictor, passages, options.decoding, options.seed)
        tokens = predictor.processor.tokenizer.encode(written)
        return Measured(written, self._metrics(predictor, tokens, passages))

    def baselines(
        self, predictor: Predictor, examples: Sequence[Passage], options: Measuring
    ) -> dict[str, dict[str, float]]:
        """Two ways that know the words of a text, but not their order: its most frequent token over and over, and the
        training text that shares the most words."""
        if self._lost(predictor):
            return {}
        passages, tokenizer = self._measured(predictor, examples, options), predictor.processor.tokenizer
        learned = tokenizer.encode([passage.text for passage in self._learned(predictor)[0]])
        asked = tokenizer.encode([passage.text for passage in passages])
        ((frequent, _),) = Counter(token for tokens in learned for token in tokens).most_common(1)
        places = nearest_by_words(asked, learned, len(tokenizer)).tolist()
        ways = {
            "the most frequent token": [[frequent] * len(tokens) for tokens in asked],
            "the nearest training text": [learned[place] for place in places],
        }
        return {name: self._metrics(predictor, tokens, passages) for name, tokens in ways.items()}

    def notes(self, predictor: Predictor, examples: Sequence[Passage]) -> list[str]:
        lost = self._lost(predictor)
        fit = f"{len(self.fitting(predictor, examples)):,} have at most {self.examples.max_length:,} tokens"
        return [fit, *([f"nothing to compare with: {lost}"] if lost else [])]

    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        """A text to be read and written again; its sentences are called by their first words."""
        passage, rewriting = passage_of(text), self.rewriting(predictor.processor)
        batch = rewriting.batch(rewriting.encode([passage]), None)
        names = [*(" ".join(sentence.split()[:NAMED]) for sentence in passage.sentences), END_SIGN]
        inputs = predictor.on_device(batch.inputs)
        return ModelInputs(inputs, names, int(inputs["source_lengths"].sum()))

    def picture(self, predictor: Predictor, prediction: Answer) -> Any:
        """Which sentences each one looked at while the text was read and written."""
        reading = self.model_inputs(predictor, prediction.text)
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.model(**reading.inputs)
        names = reading.pieces
        maps = [Alignment(sight[site].weights()[0].mean(0).cpu(), names, names, site) for site in sight.sites]
        return plot_alignments(maps) if maps else None

    def _lines(self, predictor: Predictor, passages: Sequence[Passage], options: Answering) -> list[str]:
        if options.show == "text":
            return rewrite(predictor, passages, options.decoding, options.seed)
        vectors = vectors_of(predictor, passages)
        if options.show == "vector":
            return ["\t".join(f"{number:.6g}" for number in vector) for vector in vectors.tolist()]
        at_least(1, "neighbours", options.neighbours)
        known, known_vectors = self._learned(predictor)
        places, cosines = nearest(vectors, known_vectors, options.neighbours)
        return [
            "\t".join(f"{cosine:.3f} {known[place].text}" for place, cosine in zip(*row, strict=True))
            for row in zip(places.tolist(), cosines.tolist(), strict=True)
        ]

    def _measured(self, predictor: Predictor, examples: Sequence[Passage], options: Measuring) -> list[Passage]:
        """Some of the passages that fit, from all over. Raises UserError where none does."""
        fitting = self.fitting(predictor, examples)
        if not fitting:
            raise UserError(f"nothing has at most {self.examples.max_length} tokens, as what was learned has")
        return subsample(fitting, len(fitting), options.examples)

    @staticmethod
    def _metrics(
        predictor: Predictor, tokens: Sequence[Sequence[int]], passages: Sequence[Passage]
    ) -> dict[str, float]:
        return asdict(fidelity(tokens, [passage.text for passage in passages], predictor.processor.tokenizer))

    @cached_property
    def _of_training(self) -> list[tuple[list[Passage], Tensor]]:
        """What `_learned` found, once it was asked."""
        return []

    def _learned(self, predictor: Predictor) -> tuple[list[Passage], Float[Tensor, "M C"]]:
        """What the model learned from, and the vectors. Raises UserError where that is not there any more."""
        if not self._of_training:
            check_unchanged(predictor.description)
            passages = self.fitting(predictor, list(self.open()[0]))
            self._of_training.append((passages, vectors_of(predictor, passages)))
        return self._of_training[0]

    def _lost(self, predictor: Predictor) -> str:
        """Why there is nothing to compare with; empty if there is."""
        try:
            self._learned(predictor)
        except UserError as error:
            return str(error)
        return ""
