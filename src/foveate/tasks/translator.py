"""A translator in use: it is measured by the length of the source, and shows what its words look at."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from rich.console import Console

from foveate.data.dataset import Dataset
from foveate.forms.translation import SourceText, Translation, translation_metrics
from foveate.forms.written import WrittenAnswer
from foveate.metrics.resampling import Measured
from foveate.metrics.translation import ResampledQuality, quality, quality_by_length, signatures
from foveate.tasks.evaluation import Evaluation, answers_by_line
from foveate.tasks.skill import Skill
from foveate.viewer import Alignment

Pair = tuple[str, str]


class Translator(Skill):
    """A model that translates."""

    def some(self, dataset: Dataset[Any], count: int) -> list[Pair]:
        """The first pairs: a large text is not read to its end to validate."""
        return list(islice(dataset, count))

    def measure(
        self, examples: Sequence[Pair], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """Translations with their BLEU and chrF."""
        found = [one.text for one in self.answer_examples(examples, options, console)]
        references = self.processor.reads.whole_words([target for _, target in examples])
        return found, translation_metrics(found, references, options.lowercase, options.tokenize)

    def measured(self, examples: Sequence[Pair], options: Any, console: Console | None = None) -> Measured:
        """Their counts of words, which BLEU and chrF add up."""
        found = [one.text for one in self.answer_examples(examples, options, console)]
        references = self.processor.reads.whole_words([target for _, target in examples])
        return Measured(len(found), ResampledQuality(found, references, options.lowercase, options.tokenize))

    def compare(self, dataset: Dataset[Any], options: Any, console: Console | None = None) -> Evaluation:
        """BLEU and chrF over all and by the length of the source."""
        reads: SourceText = self.processor.reads
        examples: list[Pair] = list(dataset)
        sources, cut_references = zip(*examples, strict=True)
        if console is not None and (long := sum(map(reads.longer_than_training, map(reads.prepare, sources)))):
            console.print(f"{long:,} of them are longer than any the model learned from")
        found = [one.text for one in self.answer_examples(examples, options, console)]
        read, references = reads.whole_words(sources), reads.whole_words(cut_references)
        whole = quality(found, references, options.lowercase, options.tokenize)
        copied = quality(read, references, options.lowercase, options.tokenize)
        groups = quality_by_length(read, found, references, options.groups, options.lowercase, options.tokenize)
        rows = [(group.name, group.quality) for group in groups] + [("all", whole), ("the source, copied", copied)]
        ways = {self.recipe.model: whole, "the source, copied": copied}
        notes = signatures([whole, *(group.quality for group in groups)])
        if reads.lowercase > options.lowercase:
            notes.append("the model was trained on lower-cased text: see --lowercase")
        return Evaluation(
            answers=answers_by_line(found, dataset.lines),
            figures={
                dataset.unit: len(examples),
                "ways": {name: {"bleu": one.bleu, "chrf": one.chrf} for name, one in ways.items()},
                "signatures": {"bleu": whole.bleu_signature, "chrf": whole.chrf_signature},
                "by_length": [asdict(group) for group in groups],
            },
            headings=["words in source", "sentences", "BLEU", "chrF"],
            rows=[[name, f"{part.sentences:,}", f"{part.bleu:.1f}", f"{part.chrf:.1f}"] for name, part in rows],
            notes=notes,
        )

    def alignment(self, source: str, target: str) -> Alignment | None:
        """Where each piece of `target` looked in `source` while the model read both; None if it does not attend.

        A model with several layers shows the one that looks most decidedly at words, as the mean of its heads.
        """
        reads: SourceText = self.processor.reads
        writes: Translation = self.processor.writes
        if not source.strip():
            return None
        (tokens,) = writes.tokenizer.encode([target])
        answer = WrittenAnswer(text=target, tokens=tokens)
        inputs = {**reads.tensors([reads.prepare(source)])[0], **writes.teach(answer)}
        sight = self.watch(inputs, writes.attending)
        return reads.alignment(source, writes.rows(sight, self.model, answer, 0), target)
