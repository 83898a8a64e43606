"""A model that embeds texts, in use: it gives vectors, finds the nearest texts, and is compared with its beginning."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.data.text.files import read_sentences
from foveate.forms.answers import Failure
from foveate.forms.checks import check_position_count
from foveate.forms.text_vector import nearest, pair_ranks
from foveate.metrics.retrieval import as_recall
from foveate.nn import skip_init
from foveate.tasks.skill import Skill
from foveate.tasks.start.weights import open_start


class Embedder(Skill):
    """A model that gives each text a vector."""

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """The vector of each text, and with `near` the nearest sentences of that file."""
        options = self._options(options, {})
        options.check()
        sentences = [line for line in read_sentences(options.near) if line] if options.near is not None else []
        found = super().answer(given, options)
        read = [one for one in found if not isinstance(one, Failure) and one.vector]
        if sentences and read:
            vectors = torch.tensor([one.vector for one in read])
            for one, near in zip(read, nearest(vectors, self.embed(sentences), sentences, options.count), strict=True):
                one.near = near
        return found

    def embed(self, texts: Sequence[str]) -> Float[Tensor, "B C"]:
        """The vectors of texts, also of empty ones. Raises UserError for one that cannot be read."""
        reads, most, prepared = self.processor.reads, self.most_positions, []
        for text in texts:
            prepared.append(self.fit(text).prepared)
            check_position_count(text, reads.positions(prepared[-1]), most)
        found = self.answer_prepared(prepared, self.processor.writes.run_options())
        width: int = self.model.config.width  # type: ignore[union-attr, assignment]
        return torch.tensor([one.vector for one in found]).reshape(len(found), width)

    def measure(
        self, examples: Sequence[tuple[str, str]], options: Any, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        """Each source with the place of its own target among all."""
        ranks = pair_ranks(self.answer_examples(examples, options, console), examples)
        lines = [f"{source}\t{rank + 1}" for (source, _), rank in zip(examples, ranks, strict=True)]
        return lines, as_recall(ranks)

    def baselines(self, examples: Sequence[tuple[str, str]], options: Any) -> dict[str, dict[str, float]]:
        """The trained weights as they were, and the letters that texts share."""
        ways = {}
        if self.recipe.start is not None:
            before = replace(self, model=self._as_begun())
            ways[f"{self.recipe.start} as it is"] = before.measure(examples, options)[1]
        return {**ways, **super().baselines(examples, options)}

    def _as_begun(self) -> nn.Module:
        """The model with the weights that its training began from."""
        model: Any = self.model
        with skip_init():
            found = models.build(str(self.description["family"]), model.config)
        open_start(self.recipe.start or self.recipe.out).fill(found)
        return found.to(self.device).eval()
