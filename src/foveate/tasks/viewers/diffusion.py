"""A look at text-to-image pipelines of diffusers: which word drew which place."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from foveate.forms.inputs import check_length, make_title, require_text
from foveate.interop.diffusion_pipelines import denoiser, load_pipeline
from foveate.interop.huggingface import short_errors
from foveate.sight import Sight, look
from foveate.sight.measured_look import check_of_weights, finished
from foveate.tasks.viewers.diffusion_words import is_word_site, word_strip
from foveate.tasks.viewers.joint import grid_size, part_joint, parts_of, text_is_first
from foveate.tasks.viewers.texts import FolderTokenizer
from foveate.training.hardware import choose_device
from foveate.viewer.protocol import Input, InputKind, LookResult
from foveate.viewer.sides import Image, SidePair

STEPS, SEED = 20, 0
"""Steps of a drawing, and the seed of its noise."""

LOOKS = 5
"""Steps, evenly spread, whose attention the picture of the words averages. The page shows the middle one."""

TEXT = "encoder_hidden_states"
"""The input of a denoiser that is the text."""


@dataclass
class PipelineRun:
    """A drawing, and what its models read meanwhile."""

    image: Any
    calls: list[tuple[tuple, dict[str, Any]]]
    """The inputs of the denoiser, of each of its calls."""
    ids: dict[str, list[int]]
    """The tokens that each text encoder read first, by its name."""


@dataclass
class PipelineViewer:
    """A pipeline that draws from a caption."""

    pipeline: Any
    name: str
    takes: InputKind = "text"
    steps: int = STEPS
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the pipeline, such as height and width."""

    @classmethod
    def open(cls, folder: Path, device: str) -> "PipelineViewer":
        """The viewer of a pipeline's folder. Raises UserError, one line, if it cannot be opened."""
        pipeline = load_pipeline(folder, choose_device(device))
        return cls(pipeline, f"{type(pipeline).__name__} from {folder}")

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """Draw the caption, then look at the denoiser while it repeats a step in the middle.

        Of guided steps the half that reads the caption is shown. Raises UserError for an input that is not a text, and
        for a model that attends in a way that cannot be recorded.
        """
        check_of_weights(measure, self.name)
        caption = require_text(given, self.name).strip()
        with short_errors(f"{self.name} could not draw"):
            drawn = self._draw(caption)
        model, ratio = denoiser(self.pipeline), drawn.image.width / drawn.image.height
        chosen = self._chosen(drawn)
        sights = [finished(self._sight(model, call, ratio, sites), measure) for call in chosen]
        sight = sights[len(sights) // 2]
        check_length(max(max(sight[site].shape[2:]) for site in sight.sites), max_length, "the image", "places")
        words = self._words(drawn, _text_length(chosen[0]))
        notes = [self.name, f"Step {self.steps // 2 + 1} of {self.steps}, seed {SEED}.", *sight.notes]
        shown = np.asarray(drawn.image.convert("RGB"))
        names = _names(sight, words, shown, ratio)
        result = LookResult(sight, names, make_title(caption), notes)
        if any(is_word_site(site, len(words), ratio) for site in sight):
            result.picture = lambda: word_strip(shown, words, sights, ratio)
        return result

    def _draw(self, caption: str) -> PipelineRun:
        drawn = PipelineRun(None, [], {})
        encoders = {name: part for name, part in self.pipeline.components.items() if name.startswith("text_encoder")}
        hooks = [denoiser(self.pipeline).register_forward_pre_hook(_Note(drawn.calls), with_kwargs=True)]
        for name, part in encoders.items():
            if part is not None:
                hooks.append(part.register_forward_pre_hook(_NoteIds(name, drawn.ids), with_kwargs=True))
        generator = torch.Generator().manual_seed(SEED)
        try:
            with torch.inference_mode():
                found = self.pipeline(
                    caption,
                    num_inference_steps=self.steps,
                    generator=generator,
                    **{"output_type": "pil", **self.options},
                )
        finally:
            for hook in hooks:
                hook.remove()
        drawn.image = found.images[0]
        return drawn

    def _chosen(self, drawn: PipelineRun) -> list[tuple[tuple, dict[str, Any]]]:
        """The calls of evenly spread steps, each for the caption alone."""
        count = len(drawn.calls)
        each = max(1, round(count / self.steps))  # a pipeline may call its model twice a step, for guidance
        steps = count // each
        places = sorted({int((place + 0.5) * steps / LOOKS) for place in range(LOOKS)})
        return [_last_example(*drawn.calls[place * each]) for place in places]

    def _sight(
        self, model: Any, call: tuple[tuple, dict[str, Any]], ratio: float, sites: Sequence[str] | None
    ) -> Sight:
        args, kwargs = call
        with torch.inference_mode(), look(model, sites=sites) as sight:
            model(*args, **kwargs)
        text = _text_length(call)
        if text is None:
            return sight
        joint = [name for name in sight.sites if parts_of(sight[name].shape[3], text, ratio, True)]
        first = not joint or text_is_first(
            model, lambda other: model(*args, **{**kwargs, TEXT: other}), kwargs[TEXT], joint
        )
        return part_joint(sight, text, ratio, first)

    def _words(self, drawn: PipelineRun, count: int | None) -> list[str]:
        """The names of the text's positions: tokens where it is known which encoder made them, else their numbers."""
        if count is None:
            return []
        pieces: dict[str, list[str]] = {}
        for name, ids in drawn.ids.items():
            tokenizer = getattr(self.pipeline, name.replace("text_encoder", "tokenizer"), None)
            if tokenizer is not None:
                pieces[name] = FolderTokenizer.of(tokenizer).pieces(ids)
        for found in pieces.values():
            if len(found) == count:
                return found
        # Encoders of one length are joined along the width, those of others one after the other.
        joined = [
            piece for found in {len(each): each for each in reversed(pieces.values())}.values() for piece in found
        ]
        if len(joined) == count or not pieces:
            return joined or [str(place) for place in range(count)]
        if len(joined) < count:  # an encoder that is left out has zeros
            return [*joined, *["[EMPTY]"] * (count - len(joined))]
        # What the pipeline itself wrote before the caption is left out.
        return next((found[-count:] for found in pieces.values() if len(found) > count), joined[-count:])


@dataclass
class _Note:
    """A hook that notes the inputs of a model."""

    calls: list[tuple[tuple, dict[str, Any]]]

    def __call__(self, module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.calls.append((args, kwargs))


@dataclass
class _NoteIds:
    """A hook that notes the first tokens that a text encoder reads."""

    name: str
    ids: dict[str, list[int]]

    def __call__(self, module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        given = kwargs.get("input_ids", args[0] if args else None)
        if isinstance(given, Tensor) and given.ndim == 2 and not given.is_floating_point():
            self.ids.setdefault(self.name, given[0].tolist())


def _last_example(args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The inputs of the last example, which reads the caption where another one reads nothing."""
    first = args[0] if args else kwargs.get("hidden_states", kwargs.get("sample"))
    count = len(first) if isinstance(first, Tensor) else 1

    def last(given: Any) -> Any:
        return given[-1:] if isinstance(given, Tensor) and given.ndim and len(given) == count > 1 else given

    return tree_map(last, (args, kwargs))


def _text_length(call: tuple[tuple, dict[str, Any]]) -> int | None:
    given = call[1].get(TEXT)
    return given.shape[1] if isinstance(given, Tensor) and given.ndim == 3 else None


def _names(sight: Sight, words: list[str], shown: np.ndarray, ratio: float) -> dict[str, SidePair]:
    """The names of the sides of each site."""

    def side(count: int, kind: str) -> Any:
        if kind == "text" or (not kind and count == len(words)):
            return words
        size = grid_size(count, ratio)
        return Image.of(shown, *size) if size and kind != "extra" else None

    found: dict[str, SidePair] = {}
    for name in sight.sites:
        pair = name.rpartition(".")[2].split("-")
        kinds = pair if len(pair) == 2 and {*pair} <= {"text", "image", "extra"} else ["", ""]
        found[name] = tuple(side(count, kind) for count, kind in zip(sight[name].shape[2:], kinds, strict=True))
    return found
