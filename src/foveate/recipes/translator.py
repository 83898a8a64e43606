"""A trained translator: its model, its tokenizers, and what can be done with them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from foveate import bundle, models
from foveate.contracts import END, START, StepDecoder, Tokenizer, from_dict
from foveate.data import load_tokenizer, source_batches
from foveate.decoding import Decoding, decode
from foveate.sight import Alignment, look
from foveate.training.hardware import choose_device

SOURCE_TOKENIZER, TARGET_TOKENIZER = "source_tokenizer.json", "target_tokenizer.json"

END_SIGN = "¶"
"""Stands for the end of a sentence in pictures."""


@dataclass
class Description:
    """What `config.json` of a translator's folder says: enough to build it again, and to train it again."""

    task: str
    family: str
    architecture: dict[str, Any]
    recipe: dict[str, Any]


@dataclass
class Prediction:
    """A translation, and what else the search found."""

    source: str
    text: str
    log_prob: float
    """The log-probability of the tokens of `text`, in nats."""
    ended: bool = True
    """False if the search reached the length limit before the model ended the sentence."""
    others: list[str] = field(default_factory=list)
    """The next best translations, if more than one was asked for."""


@dataclass
class Translator:
    """A model with the tokenizers that it was trained with."""

    model: nn.Module
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    description: dict[str, Any]
    """What `config.json` of its folder says, as `Description`."""
    decoding: Decoding = field(default_factory=Decoding)
    batch_tokens: int = 4096

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Translator":
        """The translator of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = bundle.load(folder)
        where = str(found.folder / bundle.CONFIG)
        description = from_dict(Description, found.description, where)
        config = from_dict(models.config_class(description.family), description.architecture, where)
        model = models.build(description.family, config)
        found.fill(model)
        return cls(
            model.to(choose_device(device)).eval(),
            load_tokenizer(found.path(SOURCE_TOKENIZER)),
            load_tokenizer(found.path(TARGET_TOKENIZER)),
            found.description,
            from_dict(Decoding, description.recipe.get("decoding", {}), where),
        )

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        files = {SOURCE_TOKENIZER: self.source_tokenizer.save, TARGET_TOKENIZER: self.target_tokenizer.save}
        bundle.save(folder, self.description, self.model.state_dict(), files)

    def run(self, text: str, **decoding: Any) -> Prediction:
        """Translate one sentence; keyword arguments replace fields of `decoding`."""
        return self.translate([text], replace(self.decoding, **decoding))[0]

    def translate(self, sentences: Sequence[str], decoding: Decoding | None = None) -> list[Prediction]:
        """Translate many sentences, in batches of like length; an empty one gives an empty translation."""
        found = dict(self.translations(sentences, decoding))
        return [found.get(place) or Prediction(sentence, "", 0.0) for place, sentence in enumerate(sentences)]

    def translations(
        self, sentences: Sequence[str], decoding: Decoding | None = None
    ) -> Iterator[tuple[int, Prediction]]:
        """As `translate`, each translation with its sentence's place, as soon as its batch is done."""
        decoding = self.decoding if decoding is None else decoding
        places = [place for place, sentence in enumerate(sentences) if sentence.strip()]
        tokens = self.source_tokenizer.encode([sentences[place] for place in places])
        device = next(self.model.parameters()).device
        generator = torch.Generator(device).manual_seed(torch.initial_seed() % 2**63)
        for rows, inputs in source_batches(tokens, self.batch_tokens):
            inputs = {name: value.to(device) for name, value in inputs.items()}
            with torch.inference_mode():
                found = decode(cast(StepDecoder, self.model), inputs, inputs["source_lengths"], decoding, generator)
            texts = [self.target_tokenizer.decode([one.tokens for one in each]) for each in found]
            for row, each, (best, *others) in zip(rows, found, texts, strict=True):
                prediction = Prediction(sentences[places[row]], best, each[0].log_prob, each[0].ended, others)
                yield places[row], prediction

    def too_long(self, sentences: Iterable[str]) -> list[int]:
        """The places of sentences with more tokens than any that the model was trained on."""
        limit = self.description.get("recipe", {}).get("text", {}).get("max_length")
        lengths = map(len, self.source_tokenizer.encode(list(sentences)))
        return [] if limit is None else [place for place, length in enumerate(lengths) if length > limit]

    def inputs(self, source: Sequence[int], target: Sequence[int]) -> dict[str, Tensor]:
        """What the model is given to read one source and its translation at once, as it does in training."""
        device = next(self.model.parameters()).device
        return {
            "source": torch.tensor([[*source, END]], device=device),
            "source_lengths": torch.tensor([len(source) + 1], device=device),
            "target": torch.tensor([[START, *target]], device=device),
        }

    def alignment(self, source: str, target: str) -> Alignment | None:
        """Where each piece of `target` looked in `source` while the model read both; None if it does not attend.

        A model with several layers shows the one that looks most decidedly at words, as the mean of its heads. The
        ends of the sentences, where heads rest that have nothing to do, do not count in that choice.
        """
        (read,), (written,) = self.source_tokenizer.encode([source]), self.target_tokenizer.encode([target])
        with torch.inference_mode(), look(self.model, sites=["decoder", "*cross"]) as sight:
            self.model(**self.inputs(read, written))
        maps = {site: sight[site].weights()[0] for site in sight.sites}
        if not maps or not read or not written:
            return None
        site, heads = max(maps.items(), key=lambda found: float(found[1].mean(0)[:-1, :-1].amax(-1).mean()))
        return Alignment(
            heads.mean(0).cpu(),
            [*self.target_tokenizer.pieces(written), END_SIGN],
            [*self.source_tokenizer.pieces(read), END_SIGN],
            site if len(heads) == 1 else f"{site}, mean of {len(heads)} heads",
        )
