"""Hugging Face folders of models that write about images and that foveate has none of, such as LLaVA, Qwen2-VL and GIT:
they run in the installed transformers."""

import importlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from rich.console import Console
from torch import Tensor

from foveate import run_dir
from foveate.contracts import Picture
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.inputs import make_title
from foveate.forms.processed_image import ProcessedInputs, WriteAboutOptions, reads_and_writes
from foveate.forms.processor import Processor
from foveate.interop.huggingface import LOCAL_ONLY, import_transformers, short_errors
from foveate.interop.preprocessors import PREPROCESSOR, PROCESSOR
from foveate.interop.through_transformers import read_through_transformers
from foveate.sight import Sight
from foveate.sight.measured_look import RelevanceMap, Target
from foveate.tasks import find_task
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.effects import InputPlaces
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.hf.image_places import trace_origin
from foveate.tasks.hf.words_and_image import WordsAndImage
from foveate.tasks.looking import ReadInput
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill
from foveate.tasks.viewers.texts import FolderTokenizer
from foveate.training.hardware import choose_device
from foveate.viewer.protocol import InputKind, LookResult

TEMPLATE = "chat_template.jinja"

VIDEOS = "video_processor"
"""What transformers calls the part of a processor that reads videos."""

READ_ALIKE = {"SmolVLMProcessor": "Idefics3Processor"}
"""Processors that need a library to name the times of a video, and those that read images as they do without it."""

PROCESSOR_FILES = (PROCESSOR, PREPROCESSOR)

TOKENS = ("input_ids", "attention_mask")


class ImageTextWriter(Skill):
    """A model of transformers that writes about an image."""

    @property
    def theirs(self) -> Any:
        """The model of transformers."""
        return self.model.theirs

    @property
    def name(self) -> str:
        return f"{type(self.theirs).__name__} from {self.folder}"

    @property
    def takes(self) -> InputKind:
        return "question" if self.processor.reads.asks else "image"

    def answers_as_they_come(self, prepared: Sequence[Any], options: Any) -> Iterator[tuple[int, Any]]:
        """One by one: images may have any number of places."""
        for row, one in enumerate(prepared):
            with torch.inference_mode():
                (answer,) = self.processor.writes.decide(self.model, self.on_device(one.inputs), [one], options)
            yield row, answer

    def baselines(self, examples: Sequence[Any], options: Any) -> dict[str, dict[str, float]]:
        """None: its training data are not known."""
        return {}

    def evaluate(self, data: Sequence[Path], options: Any = None, console: Console | None = None) -> Evaluation:
        """On a table of questions, or of captions for a model that is asked none."""
        if not data:
            raise UserError("this model was trained elsewhere: give --data TABLE to measure it on")
        return super().evaluate(data, options, console)

    # -- looking

    def watch(
        self,
        inputs: Mapping[str, Tensor],
        sites: Sequence[str] | None = None,
        measure: str = "weights",
        target: Target | None = None,
    ) -> Sight:
        with short_errors(f"{type(self.theirs).__name__} could not be run on this input"):
            return super().watch(inputs, sites, measure, target)

    def look_of(self, read: ReadInput, sight: Sight, max_length: int) -> LookResult:
        """The words over the image come first."""
        stacked = any(isinstance(site, RelevanceMap) for site in sight)
        seen = self._seen(read.prepared, read.answer, sight, self.watch(read.inputs) if stacked else None)
        answer = read.answer
        notes = [self.name, answer.look_line, *seen.notes]
        draw = lambda: seen.draw(answer.title)  # noqa: E731
        return LookResult(seen.sight, seen.names, make_title(read.title), notes, draw, seen.opening)

    def input_places(self, read: ReadInput, looked: LookResult, sight: Sight) -> list[InputPlaces]:
        """Words, and the cells of the image."""
        return self._seen(read.prepared, read.answer, sight).input_places

    def picture(self, answer: Any) -> Picture | None:
        reads = self.processor.reads
        prepared = reads.prepare(reads.open(answer.given))
        inputs = {**reads.tensors([prepared])[0], **self.processor.writes.teach(answer)}
        return self._seen(prepared, answer, self.watch(inputs)).draw(answer.title)

    def _seen(self, prepared: ProcessedInputs, answer: Any, sight: Sight, whole: Sight | None = None) -> WordsAndImage:
        """Where the model looked while it read the input and wrote the answer; `whole` has the weights of all sites,
        where a sight has stacks of them."""
        reads, writes = self.processor.reads, self.processor.writes
        begun = [] if self.theirs.config.is_encoder_decoder else [self.model.start]
        before = prepared.inputs["input_ids"][0].tolist() if "input_ids" in prepared.inputs else begun
        pieces = writes.tokenizer.pieces([*before, *answer.tokens])
        picture = reads.picture(prepared.value.image)
        return WordsAndImage(
            sight,
            prepared,
            answer.tokens,
            pieces,
            self.theirs.config,
            trace_origin(lambda image: self._inputs(prepared, image), picture),
            picture,
            whole,
        )

    def _inputs(self, prepared: ProcessedInputs, image: PIL.Image.Image) -> Mapping[str, Any]:
        """What the model reads where another image stands in place of that of an input."""
        return self.processor.reads.prepare(prepared.value._replace(image=image)).inputs


def open_processor(folder: Path) -> Any:
    """The processor of a folder. Raises UserError, one line, for one that transformers cannot open."""
    transformers = import_transformers()
    with short_errors(f"the processor in {folder} cannot be used"):
        try:
            found = transformers.AutoProcessor.from_pretrained(folder, **LOCAL_ONLY)
        except (ImportError, AttributeError, OSError, ValueError):  # what reads videos lacks torchvision, or its file
            found = _without_videos(folder)
        return found if hasattr(found, "image_processor") and hasattr(found, "tokenizer") else TwoParts(folder)


def _without_videos(folder: Path) -> Any:
    """The processor of a folder, without the part that reads videos; None where transformers does not name it."""
    files = [read_json(folder / name) for name in PROCESSOR_FILES if (folder / name).is_file()]
    settings = {name: value for one in reversed(files) for name, value in one.items()}
    usual = importlib.import_module("transformers.models.auto.processing_auto").PROCESSOR_MAPPING_NAMES
    named = settings.get("processor_class") or usual.get(read_json(folder / run_dir.CONFIG).get("model_type"))
    kind = getattr(import_transformers(), READ_ALIKE.get(str(named), str(named)), None)
    if kind is None:
        return None

    class Still(kind):  # type: ignore[misc]
        """A processor that has None where videos are read."""

        def check_argument_for_proper_class(self, name: str, argument: Any) -> Any:
            return None if name == VIDEOS else super().check_argument_for_proper_class(name, argument)

    parts, taken = TwoParts(folder), inspect.signature(kind.__init__).parameters
    options = {name: settings[name] for name in taken if name in settings and name != "chat_template"}
    own = {"image_processor": parts.image_processor, "tokenizer": parts.tokenizer, VIDEOS: None}
    own = {name: part for name, part in own.items() if name in kind.get_attributes()}
    return Still(**{**options, **own}, chat_template=parts.chat_template)


class TwoParts:
    """What reads images and a tokenizer, where transformers has no processor that joins them.

    The text has one token for an image.
    """

    def __init__(self, folder: Path) -> None:
        transformers = import_transformers()
        self.image_processor = transformers.AutoImageProcessor.from_pretrained(folder, **LOCAL_ONLY)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **LOCAL_ONLY)
        template, self.number = folder / TEMPLATE, read_json(folder / run_dir.CONFIG).get("image_token_id")
        self.image_token = None if self.number is None else self.tokenizer.convert_ids_to_tokens(self.number)
        own = template.read_text(encoding="utf-8") if template.is_file() else None
        self.chat_template = own or self.tokenizer.chat_template

    def apply_chat_template(self, messages: Any, add_generation_prompt: bool) -> str:
        """The text of a chat."""
        options = {"tokenize": False, "add_generation_prompt": add_generation_prompt}
        return str(self.tokenizer.apply_chat_template(messages, chat_template=self.chat_template, **options))

    def __call__(self, images: Any, return_tensors: str, text: str | None = None) -> dict[str, Any]:
        """The inputs of an image, and of a text about it."""
        found = dict(self.image_processor(images=images, return_tensors=return_tensors))
        if text is None or self.image_token is None:
            return found
        tokens = self.tokenizer(text, return_tensors=return_tensors)
        kinds = (tokens["input_ids"] == self.number).int()
        return {**found, **{name: tokens[name] for name in TOKENS}, "mm_token_type_ids": kinds}


class ImageTextFolder:
    """Opens a folder: what `foveate run` and `eval` ask of a task."""

    def run_options(self, recipe: Mapping[str, Any], where: str) -> WriteAboutOptions:
        """The flags of `foveate run`."""
        return WriteAboutOptions()

    def eval_options(self, recipe: Mapping[str, Any], where: str) -> WriteAboutOptions:
        """The flags of `foveate eval`."""
        return WriteAboutOptions()

    def load(self, folder: Path | str, device: str = "cpu") -> ImageTextWriter:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder = Path(folder)
        public = read_through_transformers(folder)
        processor = open_processor(folder)
        forms = Processor(*reads_and_writes(processor, FolderTokenizer.of(processor.tokenizer)))
        task = find_task("answer" if forms.reads.asks else "caption")
        recipe = public_recipe(task, public, folder, forms)
        recipe = replace(recipe, model=folder.name)
        model = public.model.to(choose_device(device))
        description = asdict(RunConfig(task.name, public.family, asdict(recipe.architecture), {"examples": {}}))
        return ImageTextWriter(task, recipe, model, forms, description, folder)
