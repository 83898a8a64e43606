"""Hugging Face folders of models that write about images: lines of text, documents, captions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.processor import Processor
from foveate.forms.public_image import PublicImage
from foveate.forms.public_written import PublicCaption, PublicLineText
from foveate.interop.public_folder import check_tokenizer, read_folder
from foveate.special_tokens import Role
from foveate.tasks import find_task
from foveate.tasks.caption import Captioner
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.hf.generation import Generation, read_generation
from foveate.tasks.hf.translation_tokenizers import single_id
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill
from foveate.training.hardware import choose_device

READERS = ("trocr", "mbart")
"""The decoders of folders that read what is written in an image; others describe it."""

BLIP_IDS = {"bos_token_id": "decoder_start", "sep_token_id": "eos", "pad_token_id": "pad"}
"""What BLIP calls the tokens with which a text starts and ends, and that of padding."""

LONGEST = 128
"""Tokens of a text at most, where a folder does not say."""

WRITES: dict[str, type[Any]] = {"read": PublicLineText, "caption": PublicCaption}
"""What is written, by task."""


class PublicReader(Skill):
    """A model that others trained to read what is written in images."""

    def baselines(self, examples: Sequence[Any], options: Any) -> dict[str, dict[str, float]]:
        """None: its training data are not known."""
        return {}


class PublicCaptioner(Captioner):
    """A model that others trained to describe images."""

    def baselines(self, examples: Sequence[Any], options: Any) -> dict[str, dict[str, float]]:
        """None: its training data are not known."""
        return {}


SKILLS = {"read": PublicReader, "caption": PublicCaptioner}


def task_of(folder: Path) -> str:
    """The task that the model of a folder was trained for, as far as its decoder tells."""
    decoder = read_json(folder / run_dir.CONFIG).get("decoder")
    kind = decoder.get("model_type") if isinstance(decoder, Mapping) else None
    return "read" if kind in READERS else "caption"


def generation_of(folder: Path) -> Generation:
    """How the model of a folder is asked to write. Raises UserError for a setting that foveate does not obey."""
    config = read_json(folder / run_dir.CONFIG)
    if config.get("model_type") == "blip":  # whose decoder begins and ends by its own tokens, whatever the folder says
        text = config.get("text_config") or {}
        usual = {"bos_token_id": 30522, "sep_token_id": 102, "pad_token_id": 0}
        own = {f"{role}_token_id": text.get(name, usual[name]) for name, role in BLIP_IDS.items()}
        found = read_generation(folder, own, fixed=True)
    else:
        decoder = config.get("decoder") or {}
        names = [name for name in decoder if name.endswith("_token_id")]
        found = read_generation(folder, {name: decoder[name] for name in names})
    if found.decoding.max_new_tokens is None:
        found.decoding = replace(found.decoding, max_new_tokens=LONGEST)
    return found


def tokenizer_of(folder: Path, generation: Generation) -> TextTokenizer:
    """The tokenizer of a folder, whose texts begin and end with the tokens that the folder names.

    Raises UserError where it names none.
    """
    values, found = generation.values, TextTokenizer.of(PublicTokenizer.load(folder))
    ids: dict[Role, int | None] = {
        "start": single_id(values, "decoder_start_token_id", folder),
        "end": single_id(values, "eos_token_id", folder),
        "pad": single_id(values, "pad_token_id", folder),
    }
    if ids["start"] is None:
        ids["start"] = single_id(values, "bos_token_id", folder)
    ends: tuple[tuple[Role, str], ...] = (("start", "decoder_start_token_id"), ("end", "eos_token_id"))
    for role, name in ends:
        if ids[role] is None:
            raise UserError(f"{folder} names no {name}, with which a text would {role}")
    named: dict[Role, int] = {role: number for role, number in ids.items() if number is not None}
    roles = {**found.special.ids, **named}
    if values.get("model_type") == "blip":  # the start stands in place of what BERT has before a text
        return found.with_ends((), (roles["end"],), roles)
    return TextTokenizer(found.copy(), roles)


def forms_of(folder: Path, config: Any, task: str) -> Processor:
    """The forms of a folder for a task: for its model as it is, or to train it further."""
    generation = generation_of(folder)
    vision = config.vision
    reads = PublicImage.of_folder(folder, getattr(vision, "image_size", 224), vision.channels)
    writes = WRITES[task](
        decoding=generation.decoding, tokenizer=tokenizer_of(folder, generation), rules=generation.rules
    )
    return Processor(reads, writes)


class ImageWriterFolder:
    """Opens a folder: what `foveate run` and `eval` ask of a task."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.task = folder, task_of(folder)

    @property
    def _writes(self) -> Any:
        return WRITES[self.task](decoding=generation_of(self.folder).decoding)

    def run_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate run`, with the defaults of the folder."""
        return self._writes.run_options()

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> Any:
        """The flags of `foveate eval`, with the same defaults."""
        return self._writes.measure_options()

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder, task = Path(folder), find_task(self.task)
        public = read_folder(folder)
        processor = forms_of(folder, public.model.config, self.task)
        check_tokenizer(processor.writes.tokenizer.largest, public.model)
        recipe = public_recipe(task, public, folder, processor)
        description = asdict(RunConfig(task.name, public.family, asdict(recipe.architecture), recipe.as_json()))
        model = public.model.to(choose_device(device))
        return SKILLS[self.task](task, recipe, model, processor, description, folder)
