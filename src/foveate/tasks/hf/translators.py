"""Encoder-decoders of Hugging Face folders in use: they translate, summarise, or write what they were trained to."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from rich.console import Console

from foveate.errors import UserError
from foveate.forms.processor import Processor
from foveate.forms.translation import MeasureTranslations, SourceText, Translation
from foveate.forms.written import WriteOptions
from foveate.interop.public_folder import PublicModel
from foveate.interop.through_transformers import read_any
from foveate.interop.transformers_models import ThroughTransformers
from foveate.tasks import find_task
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.hf.generation import Generation, read_generation
from foveate.tasks.hf.translation_tokenizers import LANGUAGE_FIRST, SideTokenizers, open_sides
from foveate.tasks.recipe import PairExamples
from foveate.tasks.run_config import RunConfig
from foveate.tasks.translator import Translator
from foveate.training.hardware import choose_device
from foveate.viewer.effects import EffectResult
from foveate.viewer.protocol import Input, LookResult

LONGEST = 512
"""Tokens of a text that a model of any length was trained on, where its folder does not say."""


@dataclass
class TranslateOptions(WriteOptions):
    """How a model of many languages is asked to translate."""

    source_language: str | None = None
    """Language of the texts that are read, by its code in the folder, such as eng_Latn, en_XX or en; by default the
    folder's."""
    target_language: str | None = None
    """Language to write."""


@dataclass
class MeasureLanguages(MeasureTranslations):
    """How such a model is measured."""

    source_language: str | None = None
    """Language of the texts that are read, by its code in the folder; by default the folder's."""
    target_language: str | None = None
    """Language to write."""


@dataclass
class PublicTranslation(Translation):
    """What a folder's model writes."""

    options: ClassVar[type[Any]] = TranslateOptions
    eval_options: ClassVar[type[Any]] = MeasureLanguages


@dataclass
class ForeignTranslation(PublicTranslation):
    """The same of a model that runs through transformers."""

    attending: ClassVar[tuple[str, ...]] = ("decoder*encoder_attn", "decoder*cross_attn", "decoder*EncDecAttention")


@dataclass(repr=False)
class PublicTranslator(Translator):
    """A model that others trained."""

    sides: SideTokenizers | None = field(default=None, repr=False)

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        options = options or self.processor.writes.run_options()
        return super(PublicTranslator, self.in_languages(options)).answer(given, options)

    def evaluate(self, data: Sequence[Path], options: Any = None, console: Console | None = None) -> Evaluation:
        options = options or self.processor.writes.measure_options()
        return super(PublicTranslator, self.in_languages(options)).evaluate(data, options, console)

    def look(
        self, given: Input | Path, max_length: int = 4096, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """In the folder's languages; where it names none to write, in the one that the model begins with."""
        own = self.in_languages(TranslateOptions(), needed=False)
        return super(PublicTranslator, own).look(given, max_length, sites, measure)

    def effect(self, given: Input | Path, *options: Any, **more: Any) -> EffectResult:
        """In the same languages."""
        own = self.in_languages(TranslateOptions(), needed=False)
        return super(PublicTranslator, own).effect(given, *options, **more)

    def in_languages(self, options: Any, needed: bool = True) -> "PublicTranslator":
        """The same model for the languages that the options name.

        Raises UserError for a language that there is not, and where the model has a choice and none is named.
        """
        assert self.sides is not None
        source, target = (getattr(options, name, None) for name in ("source_language", "target_language"))
        sides = self.sides.with_languages(source, target)
        found = copy(self)
        rules = self.processor.writes.rules
        if sides.kind in LANGUAGE_FIRST:
            begin = sides.target.begin
            first = begin[0] if begin and begin[0] in sides.languages.values() else rules.first
            rules = replace(rules, first=first)
            if needed and first is None:
                some = ", ".join(one.strip("_") for one in list(sides.languages)[:3])
                raise UserError(f"{self.folder} writes many languages: name one by --target-language, such as {some}")
        reads = SourceText(tokenizer=sides.source, max_length=self.processor.reads.max_length)
        found.processor = Processor(reads, replace(self.processor.writes, tokenizer=sides.target, rules=rules))
        return found


def forms_of(folder: Path, public: PublicModel) -> tuple[SideTokenizers, Generation, Processor]:
    """The tokenizers of a folder, how it writes, and its forms.

    Raises UserError for what is missing or damaged, or a tokenizer with a token that the model has no embedding for.
    """
    generation = read_generation(folder)
    config: Any = public.model.config
    sides = open_sides(folder, generation.values)
    for tokenizer, rows in ((sides.source, config.src_vocab), (sides.target, config.tgt_vocab)):
        if tokenizer.largest >= rows:
            raise UserError(
                f"the tokenizer has a token {tokenizer.largest:,}, but the model embeddings for {rows:,} only: "
                "probably they are of two different models"
            )
    most = getattr(config, "max_length", LONGEST) - len(sides.source.begin) - len(sides.source.end)
    kind = ForeignTranslation if isinstance(public.model, ThroughTransformers) else PublicTranslation
    writes = kind(decoding=generation.decoding, tokenizer=sides.target, rules=generation.rules)
    return sides, generation, Processor(SourceText(tokenizer=sides.source, max_length=most), writes)


def forms_to_train(start: Any, examples: PairExamples) -> Processor:
    """The forms of a folder that a training begins from, for the languages of its examples where it has a choice."""
    generation = read_generation(start.folder)
    sides = open_sides(start.folder, generation.values)
    if sides.kind and (sides.knows(*examples.languages) or examples.languages != PairExamples().languages):
        sides = sides.with_languages(*examples.languages)
    rules = generation.rules
    if sides.kind in LANGUAGE_FIRST and not sides.target.begin:
        raise UserError(f"{start.folder} writes many languages: name both by --from-language and --to")
    if sides.kind in LANGUAGE_FIRST:
        rules = replace(rules, first=sides.target.begin[0])
    reads = SourceText(tokenizer=sides.source)
    return Processor(reads, Translation(tokenizer=sides.target, rules=rules, decoding=generation.decoding))


@dataclass(frozen=True)
class TranslatorFolder:
    """Opens a folder: what `foveate run` and `eval` ask of a task."""

    folder: Path

    def run_options(self, recipe: Mapping[str, Any], where: str) -> TranslateOptions:
        """The flags of `foveate run`, with the defaults of the folder."""
        return TranslateOptions(decoding=read_generation(self.folder).decoding)

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> MeasureLanguages:
        """The flags of `foveate eval`, with the same defaults."""
        return MeasureLanguages(decoding=read_generation(self.folder).decoding)

    def load(self, folder: Path | str, device: str = "cpu") -> PublicTranslator:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder = Path(folder)
        public = read_any(folder)
        sides, _, processor = forms_of(folder, public)
        public.model.to(torch.device(choose_device(device)))
        task = find_task("translate")
        recipe = public_recipe(task, public, folder, processor)
        description = asdict(RunConfig(task.name, public.family, asdict(recipe.architecture), recipe.as_json()))
        return PublicTranslator(task, recipe, public.model, processor, description, folder, sides=sides)
