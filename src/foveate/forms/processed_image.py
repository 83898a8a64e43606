"""Images and texts as a processor of transformers prepares them, and what such a model writes about them.

ProcessedImage   what is read: an image, with a text or alone
TextAboutIt      what is written
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn

from foveate.contracts import IGNORE, Output
from foveate.data.images.decoding import flat, turn_upright
from foveate.errors import UserError, at_least
from foveate.forms.form import Changes, InputForm, OutputForm
from foveate.forms.image import ImageForm, count_places
from foveate.forms.inputs import open_image, require_file
from foveate.forms.question import ImageText, TextAboutImage, answer_metrics
from foveate.forms.scored import ScoredForm
from foveate.forms.written import WrittenAnswer
from foveate.interop.huggingface import short_errors
from foveate.metrics.captions import measured_captions
from foveate.metrics.resampling import Measured
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
    place_name: ClassVar[str] = "tokens"

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
                found = self._together(image, value.text)
            else:
                found = dict(self.processor(images=image, return_tensors="pt"))
                if value.text:
                    found["input_ids"] = torch.tensor([self._begin(value.text)])
        found.pop("labels", None)  # some processors make them; they are of no use without a text to learn
        inputs = {name: one for name, one in found.items() if isinstance(one, Tensor)}
        return ProcessedInputs(inputs, value)

    def places(self, prepared: ProcessedInputs) -> int:
        tokens = prepared.inputs.get("input_ids")
        return count_places((224, 224)) if tokens is None else tokens.shape[1]

    def tensors(
        self, prepared: Sequence[ProcessedInputs], generator: np.random.Generator | None = None
    ) -> tuple[dict[str, Tensor], Changes]:
        """The inputs of one image: those of several are of any shapes."""
        (one,) = prepared
        return dict(one.inputs), Changes()

    def picture(self, value: PIL.Image.Image) -> np.ndarray:
        return np.asarray(flat(turn_upright(value)).convert("RGB"))

    @property
    def _template(self) -> Any:
        return getattr(self.processor, "chat_template", None)

    @property
    def _image_token(self) -> str:
        return str(getattr(self.processor, "image_token", "") or "")

    def _together(self, image: PIL.Image.Image, text: str) -> dict[str, Any]:
        """An image and a text about it: in the folder's template; else where its processor places the image by itself,
        or before the text."""
        if self._template:
            content = [{"type": "image"}, {"type": "text", "text": text}]
            messages = [{"role": "user", "content": content}]
            written = str(self.processor.apply_chat_template(messages, add_generation_prompt=True))
            return dict(self.processor(images=image, text=written, return_tensors="pt"))
        sign = self.processor.tokenizer.convert_tokens_to_ids(self._image_token)
        try:
            found = dict(self.processor(images=image, text=text, return_tensors="pt"))
        except (ValueError, IndexError):  # as of one that misses the image
            found = {}
        if "input_ids" in found and bool((found["input_ids"] == sign).any()):
            return found
        return dict(self.processor(images=image, text=f"{self._image_token}\n{text}", return_tensors="pt"))

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
class TextAboutIt(ScoredForm, OutputForm):
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

    # -- looking

    def teach(self, answer: WrittenAnswer) -> dict[str, Tensor]:
        return {"tokens": torch.tensor([answer.tokens], dtype=torch.long)}

    def scored_labels(self, output: Output, answer: WrittenAnswer) -> Tensor:
        """Those of what was written, which is the end of what the model reads: each is predicted one place before."""
        labels, count = torch.full(output.logits.shape[:2], IGNORE), len(answer.tokens)
        end = labels.shape[1] - 1
        labels[0, end - count : end] = torch.tensor(answer.tokens)
        return labels

    def named(self, text: str, answer: WrittenAnswer) -> WrittenAnswer:
        tokens = self.tokenizer.inside(text)
        if not tokens:
            raise UserError("--target is a text of no tokens: there is nothing that the model could write")
        return replace(answer, text=text, tokens=tokens)

    # -- measuring

    def metrics(self, answers: Sequence[WrittenAnswer], examples: Sequence[Any]) -> dict[str, float]:
        """How many answers are right, or BLEU and CIDEr-D of captions."""
        if examples and hasattr(examples[0], "answer"):
            return answer_metrics([one.text for one in answers], examples)
        return self.measurable(answers, examples).all()

    def measurable(self, answers: Sequence[WrittenAnswer], examples: Sequence[Any]) -> Measured:
        if examples and hasattr(examples[0], "answer"):
            return super().measurable(answers, examples)
        return measured_captions([one.text for one in answers], examples)


def reads_and_writes(processor: Any, tokenizer: Any) -> tuple[InputForm, OutputForm]:
    """The forms of a folder."""
    return ProcessedImage(processor=processor), TextAboutIt(tokenizer=tokenizer)
