"""Images and texts as a processor of transformers prepares them, and what such a model writes about them.

ProcessedImage   what is read: an image, with a text or alone
TextAboutIt      what is written
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.data.images.decoding import flat, turn_upright
from foveate.errors import UserError, at_least
from foveate.forms.form import InputForm, MapRow, OutputForm
from foveate.forms.image import ImageForm, count_places
from foveate.forms.inputs import open_image, require_file
from foveate.forms.question import ImageText, TextAboutImage, answer_metrics
from foveate.forms.written import WrittenAnswer
from foveate.interop.huggingface import short_errors
from foveate.metrics.captions import caption_metrics
from foveate.sight import Sight
from foveate.viewer.protocol import Input

LONGEST = 256
"""Tokens of a text at most, where neither the user nor the folder says."""


class ProcessedInputs(NamedTuple):
    """An image and a text as a model of transformers reads them."""

    inputs: dict[str, Tensor]
    value: ImageText


@dataclass
class ProcessedImage(TextAboutImage, ImageForm):
    """An image, and a question or the beginning of a text."""

    needs_text: ClassVar[bool] = False

    processor: Any = None
    """The folder's, of transformers."""

    @property
    def asks(self) -> bool:
        """Whether a text is a question: the processor has a place for the image in a text."""
        return bool(self._template or self._image_token)

    def receive(self, given: Input, name: str) -> Any:
        file = require_file(given, name, "image")
        return ImageText(open_image(file, self.pixel_range), file.question.strip())

    def value(self, example: Any) -> ImageText:
        return ImageText(example.read(), getattr(example, "question", ""), of_dataset=True)

    def place(self, example: Any) -> str:
        return f"{example.image}\t{example.question}" if hasattr(example, "question") else str(example.place)

    def prepare(self, value: ImageText) -> ProcessedInputs:
        if self.asks and not value.text:
            raise UserError(self.missing)
        image = flat(turn_upright(value.image)).convert("RGB")
        with short_errors("the image cannot be processed"):
            if self.asks:
                found = dict(self.processor(images=image, text=self._prompt(value.text), return_tensors="pt"))
            else:
                found = dict(self.processor(images=image, return_tensors="pt"))
                if value.text:
                    found["input_ids"] = torch.tensor([self._begin(value.text)])
        inputs = {name: one for name, one in found.items() if isinstance(one, Tensor)}
        return ProcessedInputs(inputs, value)

    def places(self, prepared: ProcessedInputs) -> int:
        tokens = prepared.inputs.get("input_ids")
        return count_places((224, 224)) if tokens is None else tokens.shape[1]

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.asarray(flat(turn_upright(value)).convert("RGB"))

    @property
    def _template(self) -> Any:
        return getattr(self.processor, "chat_template", None)

    @property
    def _image_token(self) -> str:
        return str(getattr(self.processor, "image_token", "") or "")

    def _prompt(self, text: str) -> str:
        """The question as the folder's template has it, or behind the image."""
        if self._template:
            content = [{"type": "image"}, {"type": "text", "text": text}]
            messages = [{"role": "user", "content": content}]
            return str(self.processor.apply_chat_template(messages, add_generation_prompt=True))
        return f"{self._image_token}\n{text}"

    def _begin(self, text: str) -> list[int]:
        """The tokens with which a text begins, without its end."""
        tokenizer = self.processor.tokenizer
        inside = list(tokenizer(text, add_special_tokens=False)["input_ids"])
        first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        return inside if first is None else [first, *inside]


@dataclass
class WriteAboutOptions:
    """How a model is asked to write: otherwise as its folder says."""

    max_new_tokens: int | None = None
    """Greatest number of tokens; by default what the folder says."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if self.max_new_tokens is not None:
            at_least(1, "max_new_tokens", self.max_new_tokens)


@dataclass
class TextAboutIt(OutputForm):
    """A text that transformers generates."""

    options: ClassVar[type[Any]] = WriteAboutOptions
    eval_options: ClassVar[type[Any]] = WriteAboutOptions

    tokenizer: Any = None
    """Of the viewer's kind: ids to text and to names of pieces."""

    def nothing(self) -> WrittenAnswer:
        return WrittenAnswer()

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[WrittenAnswer]:
        """The answer to one input."""
        own: Any = model
        most = options.max_new_tokens or (None if own.says_length else LONGEST)
        with short_errors(f"{type(own.theirs).__name__} could not generate"):
            tokens = own.write(inputs, most)
        return [WrittenAnswer(text=self.tokenizer.decode(tokens).strip(), tokens=tokens)]

    def metrics(self, answers: Sequence[WrittenAnswer], examples: Sequence[Any]) -> dict[str, float]:
        """How many answers are right, or BLEU and CIDEr-D of captions."""
        texts = [one.text for one in answers]
        if examples and hasattr(examples[0], "answer"):
            return answer_metrics(texts, examples)
        return caption_metrics(texts, examples)

    def image_rows(self, sight: Sight, answer: WrittenAnswer, columns: Sequence[int], total: int) -> list[MapRow]:
        """Where each token looked in the image, in the layer that looks most decidedly; `columns` are the image's
        among all that is read."""
        found: Mapping[str, Tensor] = {
            name: sight[name].weights()[0].float().cpu().mean(0)[-len(answer.tokens) - 1 : -1][:, list(columns)]
            for name in sight.sites
            if sight[name].shape[2:] == (total, total)
        }
        if not found or not answer.tokens or not columns:
            return []
        site = max(found, key=lambda name: float(found[name].amax(-1).mean()))
        names = self.tokenizer.pieces(answer.tokens)
        return [MapRow(name, weights, site=site) for name, weights in zip(names, found[site], strict=True)]


def reads_and_writes(processor: Any, tokenizer: Any) -> tuple[InputForm, OutputForm]:
    """The forms of a folder."""
    return ProcessedImage(processor=processor), TextAboutIt(tokenizer=tokenizer)
