"""Hugging Face folders whose model gives labels: to texts, to pairs of texts, or to the words of a text."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from torch import Tensor, nn

from foveate import bundle
from foveate.contracts import Picture
from foveate.data import LabelledText
from foveate.data.text.files import read_lines
from foveate.data.text.labelled_pairs import read_labelled_pairs
from foveate.data.text.scripts import split_words
from foveate.data.text.tagged import tagged_text
from foveate.errors import TextError, UserError, one_line, quoted
from foveate.forms.checks import check_positions, unseen_labels
from foveate.forms.tagged_words import TagsAnswer
from foveate.interop.layout import label_names
from foveate.tasks.answers.label_texts import Decision, plot_decision
from foveate.tasks.answers.labelling import choose_label, evaluate_labels, label_metrics
from foveate.tasks.examples.pair_text import split_pair
from foveate.tasks.protocols import Evaluation, ModelInputs, NoOptions
from foveate.tasks.public.reader import PublicReader, open_reader

NEXT = ("next", "not next")
"""What the labels of BERT's next-sentence head are called, if the folder has no names of its own."""


@dataclass
class PublicLabeller:
    """A model with labels. Its heads differ in what they read and answer."""

    reader: PublicReader
    labels: list[str]
    description: dict[str, Any]
    head: ClassVar[str]

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "PublicLabeller":
        """The model of a folder. Raises UserError, one line, for what is missing or damaged."""
        reader, values = open_reader(Path(folder), cls.head, device)
        where = str(Path(folder) / bundle.CONFIG)
        named = cls.head != "pair" or any(not str(name).startswith("LABEL_") for name in _own_labels(values))
        labels = label_names(values, where) if named else list(NEXT)
        recipe = {"model": str(folder), "examples": {"source": None, "data": ()}}
        return cls(reader, labels, {"family": reader.family, "recipe": recipe})

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    eval_options = run_options

    @property
    def model(self) -> nn.Module:
        return self.reader.model

    @property
    def tokenizer(self) -> Any:
        return self.reader.tokenizer

    def run(self, text: str) -> Any:
        """The answer to one text."""
        return self.answer([text], NoOptions())[0]

    def answer(self, texts: Sequence[str], options: NoOptions) -> Sequence[Any]:
        """The decision about each text; an empty one gets no label."""
        raise NotImplementedError

    def longer_than_training(self, texts: Sequence[str]) -> list[int]:
        """None: how long the training texts were is not known."""
        return []

    def model_inputs(self, text: str) -> ModelInputs:
        """What the model is given to read one text, and what to call its places."""
        row = self.reader.encode(text)
        return ModelInputs(self.reader.inputs([row]), self.reader.tokenizer.pieces(row.tokens), len(row.tokens))

    def logits(self, texts: Sequence[str]) -> list[Tensor]:
        """The logits of each text, (1, N) or (T, N). Raises TextError for one that is too long to read."""
        rows = [self.reader.encode(text) for text in texts]
        check_positions(self.model, texts, enumerate(len(row.tokens) for row in rows), num_special_tokens=0)
        if empty := [place for place, row in enumerate(rows) if not row.tokens]:
            raise TextError(empty[0], f"{quoted(texts[empty[0]])} has no tokens")
        return self.reader.logits(rows)

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """How many labels are right on a user's files. Raises UserError without any."""
        if not data:
            raise UserError("this model was trained elsewhere: give --data FILE to measure it on")
        return self.measure(data, console)

    def measure(self, data: Sequence[Path], console: Console) -> Evaluation:
        """The same, with data."""
        raise NotImplementedError


class PublicClassifier(PublicLabeller):
    """Gives each text a label."""

    head = "text"

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[Decision]:
        """The decision about each text; an empty one gets no label."""
        places = [place for place, text in enumerate(texts) if text.strip()]
        found = [Decision(text, "", 0.0) for text in texts]
        with errors_at(places):
            logits = self.logits([texts[place] for place in places])
        for place, one in zip(places, logits, strict=True):
            shares = one[0].float().softmax(-1).tolist()
            found[place] = Decision(texts[place], *choose_label(self.labels, shares))
        return found

    def picture(self, prediction: Decision) -> Picture | None:
        """Where the model looked in a text when it decided."""
        return plot_decision(self.model, self.model_inputs(prediction.text), prediction)

    def measure(self, data: Sequence[Path], console: Console) -> Evaluation:
        if self.reader.reads_pairs and _has_pairs(data):
            return self.measure_pairs(data)
        text = LabelledText.from_paths(data)
        console.print(text.report, markup=False, highlight=False)
        return self._measured(list(text.texts()), [*text.labels()], "texts")

    def measure_pairs(self, data: Sequence[Path]) -> Evaluation:
        """How many labels of two texts each are right."""
        pairs = list(read_labelled_pairs(data))
        texts = [f"{pair.first}\t{pair.second}" for pair in pairs]
        return self._measured(texts, [pair.label for pair in pairs], "pairs")

    def _measured(self, texts: list[str], right: list[str], what: str) -> Evaluation:
        labels = dict.fromkeys(self.labels, 0)
        return evaluate_labels(
            self.description["recipe"]["model"], labels, self.answer(texts, NoOptions()), right, what
        )


class PublicPairs(PublicClassifier):
    """Says of two texts, `first<TAB>second`, whether the second follows the first."""

    head = "pair"

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[Decision]:
        """The decision about each pair. Raises TextError for a text that is none."""
        for place, text in enumerate(texts):
            if not all(split_pair(text, place)) and text.strip():
                raise TextError(place, f"{quoted(text)} has an empty side, where a tab must part two texts")
        return super().answer(texts, options)

    def measure(self, data: Sequence[Path], console: Console) -> Evaluation:
        return self.measure_pairs(data)


class PublicTagger(PublicLabeller):
    """Gives each word of a text a tag: that of the word's first piece."""

    head = "tokens"

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[TagsAnswer]:
        """The tags of texts whose words (punctuation marks too) are parted by spaces."""
        sentences = [split_words(text) for text in texts]
        places = [place for place, words in enumerate(sentences) if words]
        joined = [" ".join(sentences[place]) for place in places]
        found = [TagsAnswer() for _ in sentences]
        with errors_at(places):
            logits = self.logits(joined)
            for number, (place, one) in enumerate(zip(places, logits, strict=True)):
                first = self.reader.encode(joined[number]).first_pieces(sentences[place])
                if None in first:
                    word = sentences[place][first.index(None)]
                    raise TextError(number, f"the tokenizer reads nothing of the word {quoted(word)}")
                best = one.argmax(-1).tolist()
                tags = [self.labels[best[at]] for at in first if at is not None]
                found[place] = TagsAnswer(words=sentences[place], tags=tags)
        return found

    def picture(self, prediction: TagsAnswer) -> None:
        """None: `foveate look` shows where it looks."""

    def measure(self, data: Sequence[Path], console: Console) -> Evaluation:
        sentences = list(tagged_text(data))
        found = self.answer([" ".join(sentence.words) for sentence in sentences], NoOptions())
        right = [tag for sentence in sentences for tag in sentence.tags]
        metrics = label_metrics([tag for one in found for tag in one.tags], right)
        return Evaluation(
            answers=[one.line for one in found],
            figures={"words": len(right), "ways": {self.description["recipe"]["model"]: metrics}},
            headings=["tags by", "accuracy", "macro F1"],
            rows=[[self.description["recipe"]["model"], *(f"{value:.2f}" for value in metrics.values())]],
            notes=[
                f"{len(right):,} words, {len(self.labels)} tags",
                *unseen_labels("tags", right, dict.fromkeys(self.labels, 0)),
            ],
        )


KINDS: dict[str, type[PublicLabeller]] = {"text": PublicClassifier, "pair": PublicPairs, "tokens": PublicTagger}


@contextmanager
def errors_at(places: Sequence[int]) -> Iterator[None]:
    """Inside it, the place of a TextError counts texts that are some of the given ones."""
    try:
        yield
    except TextError as error:
        raise TextError(places[error.place], str(error)) from None


def _has_pairs(data: Sequence[Path]) -> bool:
    """Whether the first line that is not empty has a label and two texts."""
    return next((line.count("\t") == 2 for path in data for line in read_lines(path) if line.strip()), False)


def _own_labels(values: dict[str, Any]) -> list[str]:
    named = values.get("id2label")
    return [one_line(str(name)) for name in named.values()] if isinstance(named, dict) else []
