"""What tasks have in common that can begin from a language model: its tokenizer, its sizes, a new head."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from torch import nn

from foveate import models
from foveate.contracts import Tokenizer
from foveate.errors import UserError
from foveate.tasks.recipe import AS_USUAL, Recipe, has_all_sizes
from foveate.tasks.start import FromWeights
from foveate.tasks.start_parts import PARTS_OF, part_sizes
from foveate.training import Training

FINE_TUNING = Training(
    usual_epochs=3,
    least_steps=200,
    learning_rate=1e-4,
    schedule="linear",
    usual_warmup=50,
    label_smoothing=0.0,
    validate_every=100,
    save_every=100,
    average=1,
)
"""How trained weights are adapted: three epochs at a low rate, or 200 small steps where data are few."""

READ_AROUND = {"bert": 2, "gpt": 1}
"""The families of language models, and how many tokens they read beside a text's."""


@dataclass(kw_only=True)
class FromLanguageModel(FromWeights):
    """What the settings of a task on texts have beside a `Recipe`'s. Without --model, the preset is that of the trained
    weights; a run's own sizes count unless --model names another preset."""

    start: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """Begin from trained weights, with a new head: a run of `foveate train cloze` (a BERT) or `foveate train language`
    (a GPT), a Hugging Face folder of a BERT or RoBERTa, or minilm. Tokenizer and sizes are theirs, unless --model
    names others. A recurrent classifier begins from the embedding and the layers of a recurrent language model, or from
    the embedding of a BERT."""

    def __post_init__(self) -> None:
        recipe = cast("Recipe[Any]", self)
        fresh = recipe.architecture is None or isinstance(recipe.architecture, Mapping)
        if fresh and not has_all_sizes(recipe.architecture, recipe.model):
            recipe.architecture = self._begun(dict(recipe.architecture or {}))
        if self.start is not None and recipe.training is AS_USUAL and not self._begins_from_part:
            recipe.training = replace(FINE_TUNING)
        cast("Recipe[Any]", super()).__post_init__()
        if not isinstance(recipe.architecture, models.config_class(recipe.preset.family)):
            raise UserError(f"{self.start} has another architecture than {recipe.model}: name another --model")
        if around := READ_AROUND.get(recipe.preset.family):
            longest = recipe.architecture.max_length - around
            recipe.examples = replace(recipe.examples, max_length=min(recipe.examples.max_length, longest))

    @property
    def _begins_from_part(self) -> bool:
        """Whether the model is of another family than the trained weights."""
        begun, recipe = self.trained_body, cast("Recipe[Any]", self)
        return begun is not None and (begun.family, models.preset(recipe.model).family) in PARTS_OF

    def _begun(self, given: dict[str, Any]) -> dict[str, Any]:
        """The sizes that are known already; the preset is chosen where none was named."""
        recipe: Any = self
        begun = self.trained_body
        if begun is None:
            return given
        if recipe.model == type(recipe).model and begun.family in recipe.families:
            recipe.model = begun.preset
        if self._begins_from_part:
            return part_sizes(begun.family, begun.config, models.preset(recipe.model).values | given) | given
        return begun.sizes | given if recipe.model == begun.trained_as else given

    def build(self, **sizes: int) -> nn.Module:
        """The model; the size of its vocabulary is that of the trained weights, if there are any."""
        if self.trained_body is not None:
            sizes["vocabulary"] = self.trained_body.config.vocabulary
        return super().build(**sizes)

    def trained_tokenizer(self) -> Tokenizer | None:
        """That of the trained weights, if there are any."""
        return None if self.trained_body is None else self.trained_body.tokenizer
