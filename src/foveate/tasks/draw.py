"""Text to image: a model draws what a caption says."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch.nn.functional import cross_entropy

from foveate.contracts import IGNORE
from foveate.data.dataset import Dataset
from foveate.data.images.caption_layouts import CAPTIONED
from foveate.data.images.captions import CaptionedImage, captioned_images
from foveate.forms.drawing import MOST, Caption, CaptionDrawing, Drawing, JudgeDrawings
from foveate.metrics.attention_in_boxes import shares_of_names
from foveate.metrics.resampling import Measured
from foveate.metrics.retrieval import AMONG, as_shares, ranks_in_hundreds
from foveate.tasks.answers.judges import load_judge
from foveate.tasks.recipe import FileTable
from foveate.tasks.skill import Skill
from foveate.tasks.start.parts import AllWeights
from foveate.tasks.task import Task
from foveate.training import CrossEntropy, Training

LOOKED_AT = 100
"""Images whose attention is compared with the boxes of what they show."""

DRAWN = 500
"""Captions that are drawn to be judged, at most."""


class Painter(Skill):
    """A model that draws. It is measured by what it predicts of hidden places, and by a matcher of what it draws."""

    def answerable(self, dataset: Dataset[CaptionedImage]) -> Dataset[CaptionedImage]:
        """With the captions that are cut, where they are."""
        found = super().answerable(dataset)
        return found.map(self._with_cut_captions) if self.truncate else found

    def _with_cut_captions(self, example: CaptionedImage) -> CaptionedImage:
        return replace(example, captions=tuple(self.fit(caption).value for caption in example.captions))

    def measure(
        self, examples: Sequence[CaptionedImage], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """Nats of each hidden token and the share that is predicted; where the data tells what stands where, the share
        of the attention of a thing's name that is inside its box; with a matcher, how often it finds the caption."""
        nats, right, count = self._losses(examples)
        metrics = {"nats": nats.sum() / count.sum(), "accuracy": 100 * right.sum() / count.sum()}
        if options.matcher is not None:
            metrics |= self._recall(examples, options)
        named = [one for one in examples if one.regions][:LOOKED_AT]
        metrics |= shares_of_names(self.processor.reads.tokenizer, named, self._maps)
        rows = zip(examples, nats, count, strict=True)
        lines = [f"{one.captions[0]}\t{loss / places:.3f}" for one, loss, places in rows]
        return lines, {name: float(value) for name, value in metrics.items()}

    def measured(self, examples: Sequence[CaptionedImage], options: Any, console: Console | None = None) -> Measured:
        """The nats and the share that is predicted."""
        nats, right, count = self._losses(examples)

        def metrics(rows: Sequence[int]) -> dict[str, float]:
            some = np.fromiter(rows, np.int64)
            places = float(count[some].sum())
            return {"nats": float(nats[some].sum()) / places, "accuracy": 100 * float(right[some].sum()) / places}

        return Measured(len(nats), metrics)

    def _losses(self, examples: Sequence[CaptionedImage]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each image: the nats of its hidden tokens, how many are predicted right, and how many there are."""
        prepared = self.processor.prepare(Dataset("examples", [*examples]))
        first = [*{number: row for row, number in reversed([*enumerate(prepared.examples)])}.values()][::-1]
        parts = []
        for begin in range(0, len(first), MOST):
            batch = self.processor.batch([prepared[row] for row in first[begin : begin + MOST]], None)
            logits, labels = self.forward(batch.inputs).logits.float().cpu(), batch.labels
            nats = cross_entropy(logits.mT, labels, ignore_index=IGNORE, reduction="none")
            own = nats.sum(1), (logits.argmax(-1) == labels).sum(1), (labels != IGNORE).sum(1)
            parts.append(torch.stack([part.double() for part in own]).numpy())
        nats, right, count = np.concatenate(parts, 1)
        return nats, right, count

    def _maps(self, example: CaptionedImage) -> Sequence[Any]:
        """Where each word of the right caption looks in the right image."""
        reads, writes = self.processor.reads, self.processor.writes
        words = writes.words(reads.prepare(example.captions[0]).tokens)
        return self.maps(example, CaptionDrawing(tokens=np.stack(writes.prepare(example)), words=words))

    def _recall(self, examples: Sequence[CaptionedImage], options: JudgeDrawings) -> dict[str, float]:
        """How often the matcher finds the caption of a drawing among 100.

        Beside it stand the same for the real images, and for drawings of other captions (`recall_1_shuffled`).
        """
        judge = load_judge(options.matcher, "match-image", "--matcher")  # type: ignore[arg-type]
        chosen, reads, writes = examples[:DRAWN], self.processor.reads, self.processor.writes
        captions = [one.captions[0] for one in chosen]
        condition = self.on_device(reads.tensors([reads.prepare(caption) for caption in captions])[0])
        generator = torch.Generator(self.device).manual_seed(options.seed)
        with torch.inference_mode():
            drawn = writes.draw_tokens(self.model, condition, options, generator)[:: options.samples]
        pictures = writes.images(drawn)
        made, texts = embed(judge, [*zip(pictures, captions, strict=True)])
        real, _ = embed(judge, [(one.read(), caption) for one, caption in zip(chosen, captions, strict=True)])
        shuffled = _next_in_hundred(len(captions))
        ways = {"": made, "_shuffled": made[shuffled], "_real_images": real}
        ranks = {name: ranks_in_hundreds(images, texts, captions) for name, images in ways.items()}
        return {f"recall_1{name}": as_shares(found)["recall_1"] for name, found in ranks.items()}


def embed(judge: Any, pairs: Sequence[tuple[Any, str]]) -> torch.Tensor:
    """The vectors (2, N, E) of images and captions by a model of match-image."""
    forms = judge.processor
    asked = [forms.reads.prepare(forms.reads.pair(image, caption)) for image, caption in pairs]
    return torch.stack([one.vectors for one in judge.answer_prepared(asked, forms.writes.run_options())], 1)


def _next_in_hundred(count: int) -> list[int]:
    """For each drawing the number of the next one in its hundred."""
    found: list[int] = []
    for begin in range(0, count, AMONG):
        own = [*range(begin, min(begin + AMONG, count))]
        found += own[1:] + own[:1]
    return found


TASK = Task(
    name="draw",
    also="text to image",
    about="Train a model that draws what a caption says.",
    families=("text-to-image",),
    reads=Caption(),
    writes=Drawing(),
    objective=CrossEntropy(),
    read=lambda paths, recipe: captioned_images(paths),
    files="TABLE",
    layout="Your own images: a table with path<TAB>caption on each line.",
    layouts=CAPTIONED,
    examples=FileTable(batch=32, validation_examples=400),
    model="text-to-image-tiny",
    training=Training(
        usual_epochs=20,
        learning_rate=2e-3,
        schedule="cosine",
        usual_warmup=100,
        weight_decay=0.05,
        validate_every=300,
        save_every=300,
    ),
    start=AllWeights(),
    skill=lambda: Painter,
)
