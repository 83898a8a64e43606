"""Filling in words: a model learns to predict tokens that are hidden in running prose."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from foveate.baselines.ngrams import Ngrams
from foveate.data import TRAINERS, Prose, Splits, Tokens, open_source
from foveate.data.buckets import BucketedBatches, OneBucket
from foveate.data.dataset import Dataset
from foveate.data.text.cloze_processor import OF_CHARACTERS, ClozeProcessor
from foveate.data.text.documents import Passage
from foveate.data.text.masking import MASK
from foveate.data.text.packing import TokenRow, pack, rows_of_each
from foveate.data.text.spooled_passages import spooled
from foveate.data.text.strided_buckets import text_buckets
from foveate.errors import UserError, at_least
from foveate.forms.checks import check_positions
from foveate.sight import look
from foveate.tasks.answers.blanks import FilledText, Filling, blanks_of, check_blanks
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.examples.prose_text import COUNTED, hold_out_documents, texts_to_count, watch, where_to_count
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.training import Batches
from foveate.viewer.protocol import Input, LookResult

HIDING_OF_FAMILY = {"bert": "masked", "xlnet": "permuted", "elmo": "both ways"}
"""How each family of models learns: a name of `foveate.data.text.cloze_processor.HIDING`."""

ORDERS = {1: "unigram", 3: "trigram"}
"""The n-grams that a model is compared with; they see the tokens before a hidden one, and none after it."""

MOST_TOKENS = 8192
"""Tokens that are read together when a model is measured or asked."""


@dataclass
class ClozeText(Examples):
    """Which prose to learn from: plain text files (or .gz) or folders of .txt files, whose empty lines part paragraphs,
    and how it becomes rows of tokens."""

    validation: tuple[Path, ...] = ()
    """Prose to validate on, likewise. Without it, one in twenty of the files is held out, or, of fewer files, one
    passage in twenty; more of few data."""
    tokens: Tokens = "subwords"
    """What a text is cut into."""
    vocabulary: int = 8000
    """How many of them to learn, at most."""
    lowercase: bool = False
    """Read lower case only."""
    max_length: int = 128
    """Tokens of a row, its start included; texts are packed, so that rows have no padding."""
    hidden: float = 0.15
    """Share of the words that are hidden."""
    batch: int = 4096
    """Tokens of a batch."""
    validation_examples: int = 200
    """Passages of the text that each validation during training reads."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)
        at_least(3, "max_length", self.max_length)
        if not 0 < self.hidden < 1:
            raise UserError(f"hidden is {self.hidden}, but must be above 0 and below 1")

    def passages(self, prose: Prose) -> Dataset[Passage]:
        """The text in passages of whole sentences, each of which most often fits into one row."""
        passages = spooled(prose.passages(max(1, self.max_length // 2)))
        if not passages:
            raise UserError(f"{prose.name}: there is no text in it")
        return Dataset(prose.name, passages, "passages", [f"{sum(len(one.text.split()) for one in passages):,} words"])


@dataclass
class Cloze(Task[Architecture]):
    """Train a model to fill in words that are hidden in running prose.

    BERT learns from hidden words (masked language model), XLNet from words in a random order (permutation language
    model), ELMo from the next and the previous word of every word (bidirectional language model).

    `foveate run RUN "Let's make [MASK] chicken!"` then names the best words for each [MASK].

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "cloze"
    metric = "perplexity"
    higher_is_better = False
    unit = "hidden words"
    files = "FILE ..."
    processor = ClozeProcessor
    options = Filling
    default_training = Training(
        usual_epochs=10,
        learning_rate=1e-3,
        schedule="linear",
        usual_warmup=500,
        label_smoothing=0.0,
        validate_every=500,
        save_every=500,
    )

    examples: Annotated[ClozeText, tyro.conf.arg(name="")] = field(default_factory=ClozeText)
    model: str = "bert-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/cloze")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[Passage]:
        return self.examples.passages(Prose.from_paths(paths))

    def open_source(self, name: str) -> Splits[Any]:
        splits = open_source(name, task=self.task)
        return Splits(*map(self.examples.passages, (splits.train, splits.dev, splits.test)))

    def hold_out(self, train: Dataset[Passage], every: int) -> tuple[Dataset[Passage], Dataset[Passage]]:
        """Whole documents where there are many, otherwise passages."""
        return hold_out_documents(train, every) or super().hold_out(train, every)

    def advice(self, train: Dataset[Passage]) -> list[str]:
        return where_to_count(train) if self.start is None else []

    def fit(self, train: Dataset[Passage]) -> ClozeProcessor:
        chosen, hiding = self.examples, HIDING_OF_FAMILY[self.preset.family]
        units = "words" if hiding in OF_CHARACTERS else chosen.tokens
        tokenizer = TRAINERS[units](texts_to_count(train), chosen.vocabulary, chosen.lowercase, [MASK])
        return ClozeProcessor(tokenizer, hiding, chosen.hidden)

    def batches(self, train: Dataset[Passage], processor: Any) -> Batches:
        rows = processor.keep(train, watch(train, self.console(None)), self.examples.max_length)
        return BucketedBatches(text_buckets(rows, processor), self.examples.batch, self.training.seed)

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Filling) -> list[FilledText]:
        """Each text with the words that fit best in place of each [MASK]."""
        options.check()
        check_blanks(texts)
        questions = [predictor.processor.question(text) for text in texts]
        check_positions(predictor.model, texts, enumerate(len(tokens) for tokens, _ in questions), num_special_tokens=0)
        return [
            FilledText(text, blanks_of(predictor, tokens, places, options.best) if places else [])
            for text, (tokens, places) in zip(texts, questions, strict=True)
        ]

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        questions = map(predictor.processor.question, texts)
        return [place for place, (tokens, _) in enumerate(questions) if len(tokens) > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[Passage], options: Filling) -> Measured:
        """The perplexity of the hidden tokens of each passage, and the share that is predicted right."""
        rows = self._rows(predictor, examples)
        batches = BucketedBatches(OneBucket(rows, predictor.processor), MOST_TOKENS, 0).in_order()
        objective, nats, right, labels = self.objective(), 0.0, 0.0, 0
        for batch in batches:
            loss = objective(predictor.forward(batch.inputs), batch.to(predictor.device))
            nats += float(loss.total)
            right += float(loss.log["accuracy"])
            labels += batch.total_weight
        metrics = {"perplexity": _perplexity(nats, labels), "accuracy": 100 * right / max(1, labels)}
        return Measured([row.place for row in rows], metrics)

    def baselines(
        self, predictor: Predictor, examples: Sequence[Passage], options: Filling
    ) -> dict[str, dict[str, float]]:
        """The perplexity of the same hidden tokens after those before them, counted in the training text."""
        if self._changed(predictor):
            return {}
        tokenizer, targets = predictor.processor.tokenizer, predictor.processor.targets
        known = [targets(row) for row in pack(self.open()[0], tokenizer, self.examples.max_length)]
        rows = self._rows(predictor, examples)
        asked = [targets(row) for row in rows]
        places = [predictor.processor.way.predicted(row.tokens) - 1 for row in rows]
        found = {}
        for order, name in ORDERS.items():
            nats = iter(-Ngrams(known, order, len(tokenizer), tokenizer.special.start).log_probs(asked))
            each = [torch.tensor([next(nats) for _ in row])[at] for row, at in zip(asked, places, strict=True)]
            found[name] = {"perplexity": _perplexity(float(torch.cat(each).sum()), sum(map(len, each)))}
        return found

    def notes(self, predictor: Predictor, examples: Sequence[Passage]) -> list[str]:
        lost = self._changed(predictor)
        return [f"no n-grams to compare with: {lost}" if lost else "n-grams see only the tokens before"]

    def picture(self, predictor: Predictor, prediction: FilledText) -> Any:
        """Where the model looked from each [MASK], in its last layer: the mean of the heads."""
        from foveate.viewer import Alignment, plot_alignments

        tokens, places = predictor.processor.question(prediction.text)
        sight = self._look(predictor, tokens, places := places or [1])
        if not sight.sites:
            return None
        weights = sight[sight.sites[-1]].weights()[0].mean(0)
        weights = weights if len(weights) == len(places) else weights[places]
        labels = [f"{blank.words[0]} {blank.probabilities[0]:.2f}" for blank in prediction.blanks] or [""]
        pieces = predictor.processor.tokenizer.pieces(tokens)
        return plot_alignments([Alignment(weights.cpu(), labels, pieces, f"{sight.sites[-1]}, mean of the heads")])

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.forms.inputs import check_length, make_title, require_text
        from foveate.forms.naming import single_input_names

        text = require_text(given, predictor.task.model)
        tokens, places = predictor.processor.question(text)
        check_length(len(tokens), max_length, "the text")
        blanks = self.answer(predictor, [text], Filling())[0].blanks if MASK in text else []
        sight = self._look(predictor, tokens, places := places or [1], sites)
        rows = ([tokens[place] for place in places], tokens)
        pieces = {len(row): predictor.processor.tokenizer.pieces(row) for row in rows}
        names = single_input_names(sight, pieces.get)
        notes = [f"[MASK]: {blank.line}" for blank in blanks]
        return LookResult(sight, names, make_title(text), [*notes, *sight.notes])

    def _look(
        self, predictor: Predictor, tokens: list[int], places: list[int], sites: Sequence[str] | None = None
    ) -> Any:
        inputs = predictor.processor.way.ask([np.array(tokens)], [np.array(places)])
        with torch.inference_mode(), look(predictor.model, sites=sites) as sight:
            predictor.model(**predictor.on_device(inputs))
        return sight

    def _rows(self, predictor: Predictor, passages: Sequence[Passage]) -> Dataset[TokenRow]:
        """Each passage by itself."""
        rows = rows_of_each(passages, predictor.processor.tokenizer, self.examples.max_length)
        return Dataset("passages", list(rows), "rows")

    def _changed(self, predictor: Predictor) -> str:
        """Why the training text cannot be counted; empty if it can."""
        try:
            same = self.contents() == predictor.description.get("contents")
            passages = len(self.open()[0]) if same else 0
        except UserError as error:
            return str(error)
        if passages > COUNTED:
            return f"the training text has {passages:,} passages, and at most {COUNTED:,} are counted"
        return "" if same else "the training text is not there any more as it was"


def _perplexity(nats: float, tokens: int) -> float:
    return math.exp(min(700.0, nats / max(1, tokens)))
