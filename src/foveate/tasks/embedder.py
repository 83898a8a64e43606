"""A model that embeds texts, in use: it gives vectors, finds the nearest texts, and is compared with its beginning."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from foveate import models
from foveate.data.dataset import Dataset
from foveate.data.text.alike_pairs import read_scored
from foveate.data.text.files import read_sentences
from foveate.forms.answers import Failure
from foveate.forms.checks import check_position_count
from foveate.forms.text_vector import nearest, pair_ranks
from foveate.metrics.resampling import Measured
from foveate.metrics.retrieval import as_recall, cosine_of_pairs, letter_vectors, rank_correlation
from foveate.nn import skip_init
from foveate.tasks.evaluation import Evaluation, evaluation_rows
from foveate.tasks.skill import Skill
from foveate.tasks.start.weights import open_start


class Embedder(Skill):
    """A model that gives each text a vector."""

    _measured: tuple[Path, ...] = ()
    """The files that are measured on."""

    def answer(self, given: Sequence[Any], options: Any = None) -> Sequence[Any]:
        """The vector of each text, and with `near` the nearest sentences of that file."""
        options = options or self.options_with()
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

    def measured(self, examples: Sequence[tuple[str, str]], options: Any, console: Console | None = None) -> Measured:
        """Sources are drawn; each has its place among all targets."""
        ranks = pair_ranks(self.answer_examples(examples, options, console), examples)
        return Measured(len(ranks), lambda rows: as_recall([ranks[row] for row in rows]))

    def compare(self, dataset: Dataset[Any], options: Any, console: Console | None = None) -> Evaluation:
        """How well texts find their partners; of a table with scores (STS), also how cosines follow the scores."""
        found = super().compare(dataset, options, console)
        scored = [one for one in read_scored(self._measured) if self._fits(one.first) and self._fits(one.second)]
        if not scored:
            return found
        ways = {self.recipe.model: self, **self._before()}
        firsts, seconds, scores = zip(*scored, strict=True)
        cosines = {name: cosine_of_pairs(way.embed(firsts), way.embed(seconds)) for name, way in ways.items()}
        cosines["shared letter triples, TF-IDF"] = cosine_of_pairs(*letter_vectors(firsts, seconds))
        for name, own in cosines.items():
            found.figures["ways"][name]["spearman"] = 100 * rank_correlation(own.tolist(), scores)
        names, rows = evaluation_rows(found.figures["ways"])
        note = f"spearman: rank correlation of cosines with the scores of {len(scored):,} pairs, times 100"
        return replace(found, headings=["answers by", *names], rows=rows, notes=[*found.notes, note])

    def test_examples(self, data: Sequence[Path], options: Any) -> Dataset[Any]:
        self._measured = tuple(data)
        return super().test_examples(data, options)

    def _fits(self, text: str) -> bool:
        """Whether the model has positions for a text."""
        return self.processor.reads.positions(self.fit(text).prepared) <= (self.most_positions or math.inf)

    def _before(self) -> dict[str, "Embedder"]:
        """The model with the weights that its training began from, by name, if it began from any."""
        start = self.recipe.start
        return {} if start is None else {f"{start} as it is": replace(self, model=self._as_begun())}

    def baselines(self, examples: Sequence[tuple[str, str]], options: Any) -> dict[str, dict[str, float]]:
        """The trained weights as they were, and the letters that texts share."""
        ways = {name: before.measure(examples, options)[1] for name, before in self._before().items()}
        return {**ways, **super().baselines(examples, options)}

    def _as_begun(self) -> nn.Module:
        """The model with the weights that its training began from."""
        model: Any = self.model
        with skip_init():
            found = models.build(str(self.description["family"]), model.config)
        open_start(self.recipe.start or self.recipe.out).fill(found)
        return found.to(self.device).eval()
