"""Translation: a model writes a sentence in another language."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import track

from foveate.config import from_dict
from foveate.data.buckets import BucketedBatches
from foveate.data.dataset import Dataset
from foveate.data.text.pair_buckets import PairBuckets
from foveate.data.text.pair_processor import PairProcessor
from foveate.decoding import Decoding
from foveate.errors import UserError
from foveate.forms.checks import without_too_long
from foveate.metrics.translation import quality, quality_by_length, signatures
from foveate.tasks.answers.translations import (
    Measuring,
    Translating,
    alignment,
    translate,
    translations,
)
from foveate.tasks.answers.written import Written
from foveate.tasks.examples.data_options import unknown_note
from foveate.tasks.examples.pair_text import PairTask, PairText
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture
from foveate.tasks.protocols import Evaluation
from foveate.training import Batches, Validation
from foveate.viewer import plot_alignments
from foveate.viewer.protocol import Input, LookResult

THOROUGHNESS = 4
"""How many times as many pairs choose in the end, at most, as validate during training."""


@dataclass
class Translate(PairTask[Architecture]):
    """Train a translator on pairs of sentences.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "translate"
    metric = "bleu"
    processor = PairProcessor
    options = Translating

    examples: Annotated[PairText, tyro.conf.arg(name="")] = field(default_factory=PairText)
    model: str = "transformer-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/translate")
    """Folder for the trained model; a training that it holds is resumed."""
    decoding: Decoding = field(default_factory=Decoding)

    def check(self) -> None:
        super().check()
        if not self.examples.shared and getattr(self.architecture, "tie", None) == "all":
            raise UserError(
                "tie='all' shares one embedding, but each language has a vocabulary of its own; "
                "share one vocabulary, or use tie='output'"
            )

    @classmethod
    def run_options(cls, recipe: Mapping[str, Any], where: str) -> Translating:
        return Translating(from_dict(Decoding, recipe.get("decoding", {}), where))

    @classmethod
    def eval_options(cls, recipe: Mapping[str, Any], where: str) -> Measuring:
        return Measuring(cls.run_options(recipe, where).decoding)

    def fit(self, train: Any) -> PairProcessor:
        return PairProcessor(*self.examples.train_tokenizers(train), unit=self.examples.tokens)

    def batches(self, train: Any, processor: PairProcessor) -> Batches:
        pairs = PairBuckets(train, processor, self.examples.max_length)
        return BucketedBatches(pairs, self.examples.batch_tokens, self.training.seed)

    def examples_to_validate(
        self, predictor: Predictor, validation: Dataset[Any], console: Console
    ) -> list[tuple[str, str]]:
        """The first pairs, without those whose source is longer than the model can read."""
        count = (1 + THOROUGHNESS) * self.examples.validation_sentences
        processor, pairs = predictor.processor, list(islice(validation, count))
        sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
        for side, tokenizer, texts in (("source", processor.source, sources), ("target", processor.target, targets)):
            for note in unknown_note(f"{validation.name}, {side}", tokenizer, texts):
                console.print(note, markup=False, highlight=False)
        lengths = [len(tokens) + self.num_special_tokens for tokens in processor.source.encode(sources)]
        return without_too_long(predictor.model, pairs, lengths, validation.name, console)

    def validation(self, predictor: Predictor, validation: Dataset[Any], console: Console) -> Validation:
        """BLEU and chrF, during training of some pairs by greedy search, in the end of others, as asked."""
        pairs = self.examples_to_validate(predictor, validation, console)
        often, others = parts_to_validate(pairs, self.examples.validation_sentences)
        lowercase = self.examples.lowercase
        greedy = Measuring(Decoding(method="greedy"), lowercase=lowercase)
        thorough = Measuring(self.decoding, lowercase=lowercase)
        return Validation(
            lambda _: self.measure(predictor, often, greedy).metrics,
            self.metric,
            thorough=lambda _: self.measure(predictor, others, thorough).metrics,
        )

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Translating) -> list[Written]:
        """The translation of each text, searched for as the options say."""
        options.check()
        return translate(predictor, texts, options)

    def longer_than_training(self, predictor: Predictor, texts: Sequence[str]) -> list[int]:
        lengths = map(len, predictor.processor.source.encode(list(texts)))
        return [place for place, length in enumerate(lengths) if length > self.examples.max_length]

    def measure(self, predictor: Predictor, examples: Sequence[tuple[str, str]], options: Measuring) -> Measured:
        """BLEU and chrF of a model in training."""
        sources, references = zip(*examples, strict=True)
        found = [one.text for one in translate(predictor, sources, options, training=True)]
        scores = quality(found, self.examples.words_of(references), options.lowercase, options.tokenize)
        return Measured(found, {"bleu": scores.bleu, "chrf": scores.chrf})

    def evaluation(
        self, predictor: Predictor, dataset: Dataset[Any], options: Measuring, console: Console
    ) -> Evaluation:
        """BLEU and chrF over all and by the length of the source."""
        sources, cut_references = map(list, zip(*dataset, strict=True))
        if long := len(self.longer_than_training(predictor, sources)):
            console.print(f"{long:,} of them are longer than any the model learned from")
        found = [""] * len(sources)
        steps = translations(predictor, sources, options)
        hidden = not console.is_terminal
        for place, one in track(steps, "translating", len(sources), console=console, disable=hidden):
            found[place] = one.text
        read, references = self.examples.words_of(sources), self.examples.words_of(cut_references)
        whole = quality(found, references, options.lowercase, options.tokenize)
        copied = quality(read, references, options.lowercase, options.tokenize)
        groups = quality_by_length(read, found, references, options.groups, options.lowercase, options.tokenize)
        rows = [(group.name, group.quality) for group in groups] + [("all", whole), ("the source, copied", copied)]
        notes = signatures([whole, *(group.quality for group in groups)])
        if self.examples.lowercase > options.lowercase:
            notes.append("the model was trained on lower-cased text: see --lowercase")
        return Evaluation(
            answers=found,
            figures={
                **asdict(whole),
                "copied": {"bleu": copied.bleu, "chrf": copied.chrf},
                "by_length": [asdict(group) for group in groups],
            },
            headings=["words in source", "sentences", "BLEU", "chrF"],
            rows=[[name, f"{part.sentences:,}", f"{part.bleu:.1f}", f"{part.chrf:.1f}"] for name, part in rows],
            notes=notes,
        )

    def picture(self, predictor: Predictor, prediction: Written) -> Any:
        """Where the translation looked in its source."""
        found = alignment(predictor, prediction.input, prediction.text)
        return None if found is None else plot_alignments([found])

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.translations import look_at_translation

        return look_at_translation(predictor, given, max_length, sites)


def parts_to_validate(
    pairs: Sequence[tuple[str, str]], count: int
) -> tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]]:
    """The pairs of each validation, and those that choose in the end.

    The best checkpoint is the best on the former by chance too, so that it is compared on pairs that it was not picked
    by, unless they are too few.
    """
    often, others = pairs[:count], pairs[count : (1 + THOROUGHNESS) * count]
    return often, others if len(others) >= count else pairs
