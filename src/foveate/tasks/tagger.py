"""A trained tagger: its model, its lexicon, and what can be done with them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from foveate import bundle
from foveate.contracts import Picture
from foveate.data import Lexicon, TaggedText, load_lexicon, open_source, word_batches
from foveate.errors import UserError, printable
from foveate.sight import look
from foveate.tasks.measures import accuracy, macro_f1
from foveate.tasks.texts import to_measure_on
from foveate.tasks.trained import (
    Evaluation,
    NoOptions,
    Reading,
    check_positions,
    longest_learned,
    opened,
    said,
    unlearned,
)
from foveate.viewer import Alignment, plot_alignments

LEXICON = "lexicon.json"


@dataclass
class Tagging:
    """A sentence's words and the tag of each."""

    words: Sequence[str]
    tags: Sequence[str]

    @property
    def line(self) -> str:
        """Like "The/DET boat/NOUN ./PUNCT"."""
        return " ".join(f"{word}/{printable(tag)}" for word, tag in zip(self.words, self.tags, strict=True))


@dataclass
class Tagger:
    """A model with the lexicon that it was trained with."""

    model: nn.Module
    lexicon: Lexicon
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Tagger":
        """The tagger of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        path = found.files.path(LEXICON)
        lexicon, sizes = load_lexicon(path), found.description.architecture
        has, needed = (lexicon.vocabulary, len(lexicon.tags)), (sizes["vocabulary"], sizes["tags"])
        if has != needed:
            raise UserError(
                f"{path} has {has[0]:,} words and {has[1]} tags, but the model {needed[0]:,} and {needed[1]}: "
                "probably they are of two different models"
            )
        return cls(found.model, lexicon, found.files.description)

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> NoOptions:
        return NoOptions()

    eval_options = run_options

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        bundle.save(folder, self.description, self.model.state_dict(), {LEXICON: self.lexicon.save})

    def run(self, text: str) -> Tagging:
        """Tag one sentence, whose words (punctuation marks too) are parted by spaces."""
        return self.tag([text.split()])[0]

    def answer(self, texts: Sequence[str], options: NoOptions) -> list[Tagging]:
        return self.tag([text.split() for text in texts])

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tagging]:
        """Tag many sentences, in batches of like length; an empty one gets no tags."""
        found = dict(self._tags(sentences))
        return [Tagging(words, found.get(place, [])) for place, words in enumerate(sentences)]

    def _tags(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, list[str]]]:
        """The place of each sentence that has words, and their tags."""
        device = next(self.model.parameters()).device
        places = [place for place, words in enumerate(sentences) if words]
        texts, lengths = list(map(" ".join, sentences)), [len(sentences[place]) for place in places]
        check_positions(self.model, texts, zip(places, lengths, strict=True), marks=0)
        for rows, inputs in word_batches([sentences[place] for place in places], self.lexicon, self.batch_tokens):
            inputs = {name: value.to(device) for name, value in inputs.items()}
            with torch.inference_mode():
                best = self.model(**inputs).logits.argmax(-1).tolist()
            for row, numbers in zip(rows, best, strict=True):
                words = sentences[places[row]]
                yield places[row], [self.lexicon.tags[number] for number in numbers[: len(words)]]

    def too_long(self, texts: Sequence[str]) -> list[int]:
        """The places of sentences with more words than any that the model was trained on."""
        limit = longest_learned(self.description)
        return [place for place, text in enumerate(texts) if len(text.split()) > limit]

    def reading(self, text: str) -> Reading:
        """What the model is given to read one sentence, and what to call its places."""
        words, device = text.split(), next(self.model.parameters()).device
        ((_, inputs),) = word_batches([words], self.lexicon, self.batch_tokens)
        return Reading({name: value.to(device) for name, value in inputs.items()}, words, len(words))

    def picture(self, prediction: Tagging) -> Picture | None:
        """Where each word looked, in the layer that looks most decidedly; None if the model does not attend."""
        reading = self.reading(" ".join(prediction.words))
        with torch.inference_mode(), look(self.model) as sight:
            self.model(**reading.inputs)
        maps = {site: sight[site].weights()[0].mean(0).cpu() for site in sight.sites}
        if not maps:
            return None
        site, weights = max(maps.items(), key=lambda found: float(found[1].amax(-1).mean()))
        tagged = [f"{word}/{printable(tag)}" for word, tag in zip(prediction.words, prediction.tags, strict=True)]
        return plot_alignments([Alignment(weights, tagged, reading.pieces, f"{site}, mean of its heads")])

    def evaluate(self, data: Sequence[Path], options: NoOptions, console: Console) -> Evaluation:
        """Accuracy, over all words and over those that the training text does not have, and macro F1; beside a tagger
        that knows each word's most frequent tag, and the most frequent tag of all."""
        source = said(self.description, "examples", "source", kind=str | None)
        preset = said(self.description, "model", kind=str)
        text = to_measure_on(source, data, lambda: open_source(source, task="tag"), TaggedText.from_paths, "FILE")
        console.print(text.report, markup=False, highlight=False)
        sentences = list(text)
        predictions = self.tag([sentence.words for sentence in sentences])
        words = [word for sentence in sentences for word in sentence.words]
        known, unknown_tag = self.lexicon.words, self.lexicon.tag_of_unknown
        ways = {
            preset: [tag for prediction in predictions for tag in prediction.tags],
            "each word's most frequent tag": [known.get(word, unknown_tag) for word in words],
            f"always {self.lexicon.tags[0]}": [self.lexicon.tags[0]] * len(words),
        }
        right = [tag for sentence in sentences for tag in sentence.tags]
        unknown = [place for place, word in enumerate(words) if word not in known]
        figures = {name: _figures(found, right, unknown) for name, found in ways.items()}
        return Evaluation(
            answers=[prediction.line for prediction in predictions],
            figures={"words": len(words), "unknown_words": len(unknown), "ways": figures},
            headings=["tags by", "accuracy", f"of {len(unknown):,} unknown words", "macro F1"],
            rows=[
                [name, *("–" if value is None else f"{value:.2f}" for value in row.values())]
                for name, row in figures.items()
            ],
            notes=[
                f"{len(words):,} words, {len(set(right))} tags; a word is unknown that the training text does not have",
                *unlearned("tags", right, self.lexicon.tags),
            ],
        )


def _figures(found: Sequence[str], right: Sequence[str], unknown: Sequence[int]) -> dict[str, float | None]:
    """How good tags are; without unknown words nothing can be said of them."""
    of_unknown = accuracy([found[place] for place in unknown], [right[place] for place in unknown])
    return {
        "accuracy": accuracy(found, right),
        "accuracy_unknown": of_unknown if unknown else None,
        "macro_f1": macro_f1(found, right),
    }
