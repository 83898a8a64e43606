"""A trained translator: its model, its tokenizers, and what can be done with them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from foveate import bundle
from foveate.config import from_dict
from foveate.contracts import END, START, Picture, StepDecoder, Tokenizer
from foveate.data import source_batches
from foveate.decoding import Decoding, batches_at_once, decode_all
from foveate.errors import at_least
from foveate.inference.cpu import Precision, optimize_for_cpu
from foveate.sight import look
from foveate.tasks.quality import check_tokenize, quality, quality_by_length, signatures
from foveate.tasks.texts import pairs_to_measure_on
from foveate.tasks.trained import Evaluation, Writing, check_positions, longest_learned, opened, said
from foveate.viewer import Alignment, plot_alignments

SOURCE_TOKENIZER, TARGET_TOKENIZER = "source_tokenizer.json", "target_tokenizer.json"

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

    @property
    def line(self) -> str:
        """All translations, parted by tabs."""
        return "\t".join([self.text, *self.others])


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
    at_once: int = 1
    """Batches that share the threads of a CPU."""
    _packed: dict[Precision, "Translator"] = field(default_factory=dict, init=False, repr=False)
    _unpacked: "Translator | None" = field(default=None, init=False, repr=False)

    @classmethod
    def load(cls, folder: Path | str, device: str = "cpu") -> "Translator":
        """The translator of a run folder, on a device ("auto": a GPU if there is one).

        Raises UserError, one line, for whatever is missing or damaged.
        """
        found = opened(folder, device)
        return cls(
            found.model,
            found.tokenizer(SOURCE_TOKENIZER, "src_vocab"),
            found.tokenizer(TARGET_TOKENIZER, "tgt_vocab"),
            found.files.description,
            cls.run_options(found.description.recipe, found.where).decoding,
        )

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @classmethod
    def run_options(cls, recipe: dict[str, Any], where: str) -> Translating:
        return Translating(from_dict(Decoding, recipe.get("decoding", {}), where))

    @classmethod
    def eval_options(cls, recipe: dict[str, Any], where: str) -> Measuring:
        return Measuring(cls.run_options(recipe, where).decoding)

    def save(self, folder: Path | str) -> None:
        """Write everything that `load` needs."""
        model = (self._unpacked or self).model
        files = {SOURCE_TOKENIZER: self.source_tokenizer.save, TARGET_TOKENIZER: self.target_tokenizer.save}
        bundle.save(folder, self.description, model.state_dict(), files)

    def run(self, text: str, **decoding: Any) -> Prediction:
        """Translate one sentence; keyword arguments replace fields of `decoding`."""
        return self.translate([text], replace(self.decoding, **decoding))[0]

    def answer(self, texts: Sequence[str], options: Translating) -> list[Prediction]:
        """The translation of each text, searched for as the options say."""
        options.check()
        return self.packed(options.precision).translate(texts, options.decoding, options.seed)

    def packed(self, precision: Precision = "float32") -> "Translator":
        """This translator as it writes fastest on a CPU, from the weights that it has when this is first asked for."""
        if self._unpacked is not None:
            return self._unpacked.packed(precision)
        if precision not in self._packed:
            model, at_once = optimize_for_cpu(self.model, precision), batches_at_once(self._device)
            self._packed[precision] = found = replace(self, model=model, at_once=at_once)
            found._unpacked = self
        return self._packed[precision]

    def translate(
        self, sentences: Sequence[str], decoding: Decoding | None = None, seed: int | None = None
    ) -> list[Prediction]:
        """Translate many sentences, in batches of like length; an empty one gives an empty translation.

        Without a `seed` random draws come from torch's own generator: others at each call, the same after the same
        `torch.manual_seed`.
        """
        found = dict(self.translations(sentences, decoding, seed))
        return [found.get(place) or Prediction(sentence, "", 0.0) for place, sentence in enumerate(sentences)]

    def translations(
        self, sentences: Sequence[str], decoding: Decoding | None = None, seed: int | None = None
    ) -> Iterator[tuple[int, Prediction]]:
        """As `translate`, each translation with its sentence's place, as soon as its batch is done."""
        decoding = self.decoding if decoding is None else decoding
        places = [place for place, sentence in enumerate(sentences) if sentence.strip()]
        tokens = self.source_tokenizer.encode([sentences[place] for place in places])
        check_positions(self.model, sentences, zip(places, map(len, tokens), strict=True))
        groups = list(source_batches(tokens, self.batch_tokens, self.at_once))
        batches = [{name: value.to(self._device) for name, value in inputs.items()} for _, inputs in groups]
        generator = None if seed is None else torch.Generator(self._device).manual_seed(seed)
        model = cast(StepDecoder, self.model)
        answers = decode_all(model, batches, decoding, generator, self.at_once)
        for (rows, _), found in zip(groups, answers, strict=True):
            texts = [self.target_tokenizer.decode([one.tokens for one in each]) for each in found]
            for row, each, (best, *others) in zip(rows, found, texts, strict=True):
                prediction = Prediction(sentences[places[row]], best, each[0].log_prob, each[0].ended, others)
                yield places[row], prediction

    def too_long(self, sentences: Iterable[str]) -> list[int]:
        """The places of sentences with more tokens than any that the model was trained on."""
        limit = longest_learned(self.description)
        lengths = map(len, self.source_tokenizer.encode(list(sentences)))
        return [place for place, length in enumerate(lengths) if length > limit]

    def inputs(self, source: Sequence[int], target: Sequence[int]) -> dict[str, Tensor]:
        """What the model is given to read one source and its translation at once, as it does in training."""
        return {
            "source": torch.tensor([[*source, END]], device=self._device),
            "source_lengths": torch.tensor([len(source) + 1], device=self._device),
            "target": torch.tensor([[START, *target]], device=self._device),
        }

    def picture(self, prediction: Prediction) -> Picture | None:
        """The `alignment` of a translation."""
        found = self.alignment(prediction.source, prediction.text)
        return None if found is None else plot_alignments([found])

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

    def evaluate(self, data: Sequence[Path], options: Measuring, console: Console) -> Evaluation:
        """BLEU and chrF over all and by the length of the source."""
        text = pairs_to_measure_on(self.description, data, "translate")
        console.print(text.report, markup=False, highlight=False)
        sources, references = map(list, zip(*text, strict=True))
        if long := len(self.too_long(sources)):
            console.print(f"{long:,} of them are longer than any the model learned from")
        found = [""] * len(sources)
        steps = self.packed(options.precision).translations(sources, options.decoding, options.seed)
        hidden = not console.is_terminal
        for place, prediction in track(steps, "translating", len(sources), console=console, disable=hidden):
            found[place] = prediction.text
        whole = quality(found, references, options.lowercase, options.tokenize)
        groups = quality_by_length(sources, found, references, options.groups, options.lowercase, options.tokenize)
        rows = [(group.name, group.quality) for group in groups] + [("all", whole)]
        return Evaluation(
            answers=found,
            figures={**asdict(whole), "by_length": [asdict(group) for group in groups]},
            headings=["words in source", "sentences", "BLEU", "chrF"],
            rows=[[name, f"{part.sentences:,}", f"{part.bleu:.1f}", f"{part.chrf:.1f}"] for name, part in rows],
            notes=[*signatures([whole, *(group.quality for group in groups)]), *self._of_case(options)],
        )

    def _of_case(self, options: Measuring) -> list[str]:
        """A note where letters count as other ones that the model cannot write."""
        lowercase = said(self.description, "examples", "lowercase", kind=bool)
        return ["the model was trained on lower-cased text: see --lowercase"] if lowercase > options.lowercase else []
