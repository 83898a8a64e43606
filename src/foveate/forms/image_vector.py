"""Vectors of images: what the body of an image model gives a classifier to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from foveate.errors import UserError
from foveate.forms.form import MapRow, OutputForm
from foveate.forms.label import pooled_row
from foveate.forms.text_vector import VectorAnswer


@dataclass
class ImageVector(OutputForm):
    """A vector: outputs with logits (B, C)."""

    def decide(
        self, model: nn.Module, inputs: dict[str, Tensor], prepared: Sequence[Any], options: Any
    ) -> list[VectorAnswer]:
        return [VectorAnswer(vector=row) for row in model(**inputs).logits.float().tolist()]

    def check_measured(self) -> None:
        raise UserError("this model gives vectors, and foveate eval measures labels: train a classifier with --from")

    def rows(self, sight: Any, model: nn.Module, answer: VectorAnswer, before: int) -> list[MapRow]:
        return pooled_row(answer.title, sight, model, before)
