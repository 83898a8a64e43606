"""Translations: how a translator searches for them, and where it looked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveate.data import source_batches
from foveate.decoding import batches_at_once, decode_all
from foveate.errors import at_least
from foveate.forms.checks import check_positions
from foveate.inference.cpu import Precision
from foveate.metrics.translation import check_tokenize
from foveate.sight import look
from foveate.tasks.answers.written import Written
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.protocols import Writing
from foveate.viewer import Alignment

TOKENS_TOGETHER = 4096
"""Tokens of the sources that are translated together, padding included."""

END_SIGN = "¶"
"""Stands for the end of a sentence in pictures."""


@dataclass
class Translating(Writing):
    """How `foveate run` has a translator write."""

    precision: Precision = "float32"
    """In full precision, or faster where layers are wide: bfloat16 on some CPUs, 8 bits on most (docs/speed.md)."""


@dataclass
class Measuring(Translating):
    """How `foveate eval` measures translations."""

    groups: int = 4
    """Groups of source lengths to tell apart."""
    lowercase: bool = False
    """Compare in lower case."""
    tokenize: str = "auto"
    """What BLEU takes for a word: sacreBLEU's 13a, intl, char, zh or none, or moses-LANGUAGE, such as moses-fr. "auto"
    is 13a, or zh or char where the references are in a script without spaces."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        super().check()
        at_least(1, "groups", self.groups)
        check_tokenize(self.tokenize)


def translate(
    predictor: Predictor, sentences: Sequence[str], options: Translating, training: bool = False
) -> list[Written]:
    """The translation of each sentence; an empty one gives an empty translation."""
    found = dict(translations(predictor, sentences, options, training))
    return [found.get(place) or Written(sentence, "", 0.0) for place, sentence in enumerate(sentences)]


def translations(
    predictor: Predictor, sentences: Sequence[str], options: Translating, training: bool = False
) -> Iterator[tuple[int, Written]]:
    """Each translation with its sentence's place, as soon as its batch is done. Batches are of like length.

    Where the model is still in `training`, its weights are used as they are now, not as they were laid out for a CPU.
    """
    processor, device = predictor.processor, predictor.device
    model: Any = predictor.model if training else predictor.optimized(options.precision)
    at_once = 1 if training else batches_at_once(device)
    places = [place for place, sentence in enumerate(sentences) if sentence.strip()]
    tokens = processor.source.encode([sentences[place] for place in places])
    check_positions(model, sentences, zip(places, map(len, tokens), strict=True))
    groups = list(source_batches(tokens, processor.source.special, TOKENS_TOGETHER, at_once))
    batches = [predictor.on_device(inputs) for _, inputs in groups]
    generator = torch.Generator(device).manual_seed(options.seed)
    answers = decode_all(model, batches, processor.target.special, options.decoding, generator, at_once)
    for (rows, _), found in zip(groups, answers, strict=True):
        texts = [processor.target.decode([one.tokens for one in each]) for each in found]
        for row, each, (best, *others) in zip(rows, found, texts, strict=True):
            yield places[row], Written(sentences[places[row]], best, each[0].log_prob, each[0].ended, others)


def translation_inputs(predictor: Predictor, source: Sequence[int], target: Sequence[int]) -> dict[str, Tensor]:
    """What the model is given to read one source and its translation at once, as it does in training."""
    processor = predictor.processor
    inputs = {
        "source": torch.tensor([[*source, processor.source.special.end]]),
        "source_lengths": torch.tensor([len(source) + 1]),
        "target": torch.tensor([[processor.target.special.start, *target]]),
    }
    return predictor.on_device(inputs)


def alignment(predictor: Predictor, source: str, target: str) -> Alignment | None:
    """Where each piece of `target` looked in `source` while the model read both; None if it does not attend.

    A model with several layers shows the one that looks most decidedly at words, as the mean of its heads. The ends of
    the sentences, where heads rest that have nothing to do, do not count in that choice.
    """
    processor = predictor.processor
    (read,), (written,) = processor.encode([(source, target)])
    with look(predictor.model, sites=["decoder", "*cross"]) as sight:
        predictor.forward(translation_inputs(predictor, read, written))
    maps = {site: sight[site].weights()[0] for site in sight.sites}
    if not maps or not read or not written:
        return None
    site, heads = max(maps.items(), key=lambda found: float(found[1].mean(0)[:-1, :-1].amax(-1).mean()))
    return Alignment(
        heads.mean(0).cpu(),
        [*processor.target.pieces(written), END_SIGN],
        [*processor.source.pieces(read), END_SIGN],
        site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads",
    )
