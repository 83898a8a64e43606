"""Hugging Face folders of models that write about images and that foveate has none of, such as LLaVA, Qwen2-VL and GIT:
they run in the installed transformers."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from foveate import run_dir
from foveate.contracts import Picture
from foveate.errors import UserError
from foveate.files import read_json
from foveate.forms.grids import GridFinder, grid_names, grid_of
from foveate.forms.inputs import check_length, make_title
from foveate.forms.naming import Naming, single_input_names
from foveate.forms.processed_image import ProcessedInputs, WriteAboutOptions, reads_and_writes
from foveate.forms.processor import Processor
from foveate.interop.huggingface import LOCAL_ONLY, import_transformers, short_errors
from foveate.interop.through_transformers import read_through_transformers
from foveate.sight import Sight
from foveate.tasks import find_task
from foveate.tasks.checkpoint import public_recipe
from foveate.tasks.evaluation import Evaluation
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill
from foveate.tasks.viewers.texts import FolderTokenizer
from foveate.training.hardware import choose_device
from foveate.viewer.protocol import Input, InputKind, LookResult

TEMPLATE = "chat_template.jinja"

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

    def look(self, given: Input, max_length: int = 4096, sites: Sequence[str] | None = None) -> LookResult:
        reads = self.processor.reads
        value = reads.receive(given, self.name)
        prepared = reads.prepare(value)
        check_length(reads.places(prepared), max_length, "the image and its text", "tokens")
        (answer,) = self.answer_prepared([prepared], WriteAboutOptions())
        sight = self._sight(prepared, answer, sites)
        notes = [self.name, answer.look_line, *sight.notes]
        names = single_input_names(sight, self._naming(prepared, answer, sight))
        draw = lambda: self._drawn(prepared, answer, sight)  # noqa: E731
        return LookResult(sight, names, make_title(reads.title(given)), notes, draw)

    def picture(self, answer: Any) -> Picture | None:
        if self.theirs.config.is_encoder_decoder:
            raise UserError(f"{self.name} has two parts: `foveate look` shows where it looked")
        reads = self.processor.reads
        prepared = reads.prepare(reads.open(answer.given))
        return self._drawn(prepared, answer, self._sight(prepared, answer, None))

    def _sight(self, prepared: ProcessedInputs, answer: Any, sites: Sequence[str] | None) -> Sight:
        """The model while it reads the input and what it wrote."""
        inputs = dict(prepared.inputs)
        written = torch.tensor([answer.tokens], dtype=torch.long)
        if "input_ids" not in inputs:  # the text begins with the token that transformers begins with
            own = self.theirs.generation_config
            begin = own.decoder_start_token_id if own.bos_token_id is None else own.bos_token_id
            inputs["input_ids"] = torch.tensor([[begin or 0]])
        what = f"{type(self.theirs).__name__} could not be run on this input"
        with short_errors(what):
            return self.watch({**inputs, "tokens": written}, sites)

    def _naming(self, prepared: ProcessedInputs, answer: Any, sight: Sight) -> Naming:
        """Tokens by name, those of the image by their number; the places of what encodes images as a grid."""
        picture, total = grid_names(self.processor.reads.picture(prepared.value.image)), _total(sight)
        before = self._tokens(prepared)
        columns = {column: number for number, column in enumerate(self._columns(prepared, answer, total), 1)}
        pieces = self.processor.writes.tokenizer.pieces([*before, *answer.tokens])
        spare = total - len(pieces)  # places of an image without tokens of their own
        names = [f"[IMAGE {columns[at]}]" if at in columns else pieces[at - spare] for at in range(total)]
        return lambda count: names if count == total else picture(count)

    @staticmethod
    def _tokens(prepared: ProcessedInputs) -> list[int]:
        """The tokens that are read, of which one stands for the start where there is no text."""
        found: list[int] = prepared.inputs["input_ids"][0].tolist() if "input_ids" in prepared.inputs else [0]
        return found

    def _columns(self, prepared: ProcessedInputs, answer: Any, total: int) -> list[int]:
        """Which of all that is read are places of the image."""
        before, config = self._tokens(prepared), self.theirs.config
        number = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
        if number in before:
            return [place for place, token in enumerate(before) if token == number]
        return list(range(total - len(before) - len(answer.tokens)))

    def _drawn(self, prepared: ProcessedInputs, answer: Any, sight: Sight) -> Picture | None:
        """The image with the places that each token looked at; None where these are no grid."""
        total = _total(sight)
        columns = self._columns(prepared, answer, total)
        grid = self._grid(prepared, len(columns))
        rows = self.processor.writes.image_rows(sight, answer, columns, total)
        if not rows or grid(len(columns))[0] == 1:
            return None
        found: Picture | None = self.processor.reads.draw(prepared.value, rows, answer.title, grid)
        return found

    def _grid(self, prepared: ProcessedInputs, count: int) -> GridFinder:
        """Rows and columns of the places of an image, which a processor may say."""
        said = prepared.inputs.get("image_grid_thw")
        if said is None:
            return grid_of
        _, height, width = said[0].tolist()
        merged = math.isqrt(max(1, height * width // max(1, count)))
        rows, columns = height // merged, width // merged
        return lambda places: (rows, columns, 0) if rows * columns == places else grid_of(places)


def _total(sight: Sight) -> int:
    """How many tokens the part that writes reads: as many as the most that see each other."""
    sizes = [sight[name].shape[2:] for name in sight.sites if not _of_images(name)]
    return max((queries for queries, keys in sizes if queries == keys), default=0)


def _of_images(site: str) -> bool:
    """Whether a site is of what encodes images."""
    return "vision" in site or "visual" in site or "image" in site


def open_processor(folder: Path) -> Any:
    """The processor of a folder. Raises UserError, one line, for one that transformers cannot open."""
    transformers = import_transformers()
    with short_errors(f"the processor in {folder} cannot be used"):
        try:
            found = transformers.AutoProcessor.from_pretrained(folder, **LOCAL_ONLY)
        except (ImportError, AttributeError):  # what reads videos needs torchvision, which images do not
            found = None
        return found if hasattr(found, "image_processor") and hasattr(found, "tokenizer") else TwoParts(folder)


class TwoParts:
    """What reads images and a tokenizer, where transformers has no processor that joins them.

    The text has one token for an image; that of a Qwen2-VL gets one for each few patches.
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
        if "image_grid_thw" in found:
            count = int(found["image_grid_thw"][0].prod()) // self.image_processor.merge_size**2
            text = text.replace(self.image_token, self.image_token * count)
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
