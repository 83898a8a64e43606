"""Language models: the next word of running prose, to write it and to go on from a beginning."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console
from torch import Tensor

from foveate.baselines.ngrams import Ngrams
from foveate.config import from_dict
from foveate.data import Passage, Prose, Splits, open_source
from foveate.data.dataset import Dataset
from foveate.data.text.language_processor import LanguageProcessor
from foveate.data.text.spooled_passages import spooled
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.forms.checks import unseen_labels
from foveate.metrics.perplexity import Perplexity, Scored, byte_count, perplexity, scores, word_count
from foveate.tasks.answers.continuations import Composing, continue_texts
from foveate.tasks.answers.written import Written
from foveate.tasks.examples.prose_text import (
    COUNTED,
    FILES,
    LanguageText,
    hold_out_documents,
    texts_to_count,
    watch,
    where_to_count,
)
from foveate.tasks.examples.text_task import TOKENS_TOGETHER, TextTask
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.protocols import START_SIGN, ModelInputs, NoOptions
from foveate.tasks.run_folder import check_unchanged
from foveate.tasks.start.parts import WholeRun
from foveate.training import Batches

ORDERS = {1: "unigram", 2: "bigram", 3: "trigram"}
"""The n-grams that a model is compared with."""


@dataclass
class Language(TextTask[Architecture]):
    """Train a language model on running prose: to write it, and to go on from a beginning.

    With a model such as rnn-conditioned, it is told of each passage what kind of text it is of: the decade of an
    address, or of your own files the name.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "language"
    metric = "perplexity"
    higher_is_better = False
    files = FILES
    processor = LanguageProcessor
    options = Composing
    start_parts = WholeRun(fine_tuned=True)
    default_training = Training(learning_rate=2e-3, usual_warmup=200, label_smoothing=0.0)

    examples: Annotated[LanguageText, tyro.conf.arg(name="")] = field(default_factory=LanguageText)
    model: str = "rnn-language"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/language")
    """Folder for the trained model; a training that it holds is resumed."""
    decoding: Decoding = field(
        default_factory=lambda: Decoding(method="sample", length_factor=0.0, length_extra=100, top_p=0.9)
    )

    @classmethod
    def run_options(cls, recipe: Mapping[str, Any], where: str) -> Composing:
        return Composing(from_dict(Decoding, recipe.get("decoding", {}), where))

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> NoOptions:
        return NoOptions()

    def passages(self, prose: Prose) -> Dataset[Passage]:
        """The text in passages of whole sentences."""
        found = spooled(prose.passages(self.examples.passage_words))
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

    def hold_out(self, train: Dataset[Passage], every: int) -> tuple[Dataset[Passage], Dataset[Passage]]:
        """Whole documents where there are many, otherwise passages."""
        return hold_out_documents(train, every) or super().hold_out(train, every)

    def lengths(self, processor: LanguageProcessor, examples: Iterable[Passage]) -> list[int]:
        return list(map(len, processor.tokenizer.encode([passage.text for passage in examples])))

    def advice(self, train: Dataset[Passage]) -> list[str]:
        return where_to_count(train) if self.start is None else []

    def fit(self, train: Dataset[Passage]) -> LanguageProcessor:
        chosen, conditions = self.examples, list[str]()
        if self.architecture.condition is not None:  # type: ignore[attr-defined]
            conditions = sorted({passage.condition for passage in train})
            if len(conditions) < 2:
                raise UserError(
                    f"{self.model} learns to write several kinds of text, but all of {train.name} is of one, "
                    f"'{conditions[0]}': give several files, whose names tell the kinds, or take rnn-language"
                )
        tokenizer = chosen.tokenizer(texts_to_count(train))
        return LanguageProcessor(tokenizer, chosen.tokens, conditions)

    def batches(self, train: Dataset[Passage], processor: LanguageProcessor) -> Batches:
        """Of the passages with at most `max_length` tokens. Raises UserError where there is none."""
        most = self.examples.max_length
        kept = processor.keep(train, watch(train, self.console(None)), most)
        return self.bucketed(kept, len(train), processor, f"{most:,} tokens")

    def examples_to_validate(self, predictor: Predictor, validation: Dataset[Any], console: Console) -> Sequence[Any]:
        if conditions := predictor.processor.conditions:
            for note in unseen_labels("conditions", [passage.condition for passage in validation], conditions):
                console.print(f"{validation.name}: {note}; it is told none", markup=False, highlight=False)
        return super().examples_to_validate(predictor, validation, console)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Composing) -> list[Written]:
        """Each text with what the model wrote after it. An empty one is written from the start."""
        options.check()
        return continue_texts(predictor, texts, options)

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        """None: a recurrent network reads beginnings of any length."""
        return []

    def measure(self, predictor: Predictor, examples: Sequence[Passage], options: NoOptions) -> Measured:
        """The perplexity per token, per word, and the bits per byte."""
        scored = self.scores(predictor, examples)
        lines = [f"{perplexity([one]).per_token:.1f}\t{one.passage.place}\t{one.passage.text}" for one in scored]
        return Measured(lines, _metrics(perplexity(scored)))

    def baselines(
        self, predictor: Predictor, examples: Sequence[Passage], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        """N-grams counted in the training text; and the model where it is told no condition, or a wrong one."""
        found = {**self._otherwise(predictor, examples)}
        if not self._lost(predictor):
            found |= self._ngrams(predictor, examples)
        return {name: _metrics(one) for name, one in found.items()}

    def notes(self, predictor: Predictor, examples: Sequence[Passage]) -> list[str]:
        words, conditions = self.examples.passage_words, predictor.processor.conditions
        notes = [f"passages of at most {words} words, each with its end"]
        if conditions:
            notes += unseen_labels("conditions", [passage.condition for passage in examples], conditions)
        unknown = predictor.processor.tokenizer.special.unknown
        if unknown_tokens := sum(row.count(unknown) for row in _sequences(predictor, examples)):
            notes.append(f"{unknown_tokens:,} tokens are unknown, and foretold without their letters")
        lost = self._lost(predictor)
        return [*notes, *([f"no n-grams to compare with: {lost}"] if lost else [])]

    def model_inputs(self, predictor: Predictor, text: str) -> ModelInputs:
        passage, processor = Passage("the input", "", (text,)), predictor.processor
        ((_, batch),) = processor.in_order([passage], 1)
        pieces = [START_SIGN, *processor.tokenizer.pieces(batch.inputs["tokens"][0, 1:].tolist())]
        return ModelInputs(predictor.on_device(batch.inputs), pieces, len(pieces))

    def scores(
        self,
        predictor: Predictor,
        passages: Sequence[Passage],
        condition: Callable[[Tensor], Tensor] | None = None,
    ) -> list[Scored]:
        """How surprising each passage is to the model, which may be told other conditions."""
        processor: LanguageProcessor = predictor.processor
        return scores(predictor.model, passages, processor.in_order(passages, TOKENS_TOGETHER), condition)

    def _otherwise(self, predictor: Predictor, passages: Sequence[Passage]) -> dict[str, Perplexity]:
        """What the model makes of the passages if it is told no condition, or a wrong one drawn at random."""
        generator, kinds = torch.Generator().manual_seed(1), len(predictor.processor.conditions)
        if not kinds:
            return {}

        def wrong(condition: Tensor) -> Tensor:
            others = torch.randint(1, kinds, condition.shape, generator=generator).to(condition.device)
            return torch.where(condition > 0, (condition - 1 + others) % kinds + 1, 0)

        told: dict[str, Callable[[Tensor], Tensor]] = {"told no condition": torch.zeros_like, "told a wrong one": wrong}
        return {name: perplexity(self.scores(predictor, passages, tell)) for name, tell in told.items()}

    def _ngrams(self, predictor: Predictor, passages: Sequence[Passage]) -> dict[str, Perplexity]:
        """The perplexity of n-grams that count the tokens of the training text."""
        known, asked = _sequences(predictor, self.open()[0]), _sequences(predictor, passages)
        counts, found = (word_count(passages), byte_count(passages)), {}
        tokenizer = predictor.processor.tokenizer
        for order, name in ORDERS.items():
            log_probs = Ngrams(known, order, len(tokenizer), tokenizer.special.start).log_probs(asked)
            found[name] = Perplexity(-float(log_probs.sum()), len(log_probs), *counts)
        return found

    def _lost(self, predictor: Predictor) -> str:
        """Why the training text cannot be counted; empty if it can."""
        try:
            check_unchanged(predictor.description)
            passages = len(self.open()[0])
        except UserError as error:
            return str(error)
        if passages > COUNTED:
            return f"the training text has {passages:,} passages, and at most {COUNTED:,} are counted"
        return ""


def _metrics(found: Perplexity) -> dict[str, float]:
    return {
        "perplexity": found.per_token,
        "perplexity_per_word": found.per_word,
        "bits_per_byte": found.bits_per_byte,
    }


def _sequences(predictor: Predictor, passages: Iterable[Passage]) -> list[list[int]]:
    tokenizer = predictor.processor.tokenizer
    return [[*row, tokenizer.special.end] for row in tokenizer.encode([passage.text for passage in passages])]
