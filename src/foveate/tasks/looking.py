"""What can be seen of a model in use: where it looks, and what it needs of that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from foveate.contracts import Picture
from foveate.errors import UserError
from foveate.forms.answers import Answer, Failure
from foveate.forms.checks import check_position_count
from foveate.forms.grids import GridFinder, find_grid, look_at_maps
from foveate.forms.image import map_weights
from foveate.forms.inputs import check_length, make_title, read_input
from foveate.forms.naming import cut_padding
from foveate.forms.scored import ScoredForm
from foveate.nn import attends
from foveate.sight import Sight
from foveate.sight.measured_look import OF_AN_ANSWER, Target
from foveate.tasks.effects import EXACT, InputPlaces, ScoredLook, input_places, measure_effects
from foveate.tasks.task import nothing_to_see
from foveate.viewer.effects import EffectResult
from foveate.viewer.protocol import Input, LookResult


@dataclass(frozen=True)
class ReadInput:
    """An input that a model has read, and its answer."""

    title: str
    value: Any
    prepared: Any
    answer: Any
    inputs: Mapping[str, Tensor]
    """Of the model, as it reads the input and its own answer."""


class Looking:
    """The part of a `Skill` that looks at its model."""

    if TYPE_CHECKING:
        task: Any
        recipe: Any
        model: nn.Module
        processor: Any
        name: Any
        most_positions: Any
        takes: Any
        fit: Any
        forward: Any
        on_device: Any
        answer_prepared: Any

    def attends(self) -> bool:
        """False for a model that has nothing to look at, whatever it reads."""
        return attends(self.model)

    def look(
        self, given: Input | Path, max_length: int = 4096, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """A look at the model while it reads an input, whose maps are those of a measure (`measured_look.MEASURES`).

        The input is a text, the `Path` of a file, or what a file holds (`File`). Gradients and relevance are those of
        the score of its answer. Raises UserError where it does not attend, or has no such measure.
        """
        read = self.read(given, max_length)
        target = self._score_of(read) if measure in OF_AN_ANSWER else None
        sight = self.watch(read.inputs, sites, measure, target)
        return self.look_of(read, sight, max_length)

    def _score_of(self, read: ReadInput) -> Target | None:
        """The score of an answer by what the model gives; None where answers have none."""
        writes = self.processor.writes
        if not isinstance(writes, ScoredForm):
            return None
        labels = writes.scored_labels(self.forward(read.inputs), read.answer)
        return lambda output: writes.score(output, labels)

    def effect(
        self,
        given: Input | Path,
        target: str | None = None,
        exact: int | None = EXACT,
        max_length: int = 4096,
        sites: Sequence[str] | None = None,
    ) -> EffectResult:
        """What heads, layers and places of an input do to the score of the model's answer, or of the answer `target`.

        The score is a log-probability, for most models. All effects are estimated, and the `exact` largest ones of each
        kind measured; None measures all. Raises UserError where the model does not attend or its answers have no score.
        """
        return measure_effects(self.model, self.score_look(given, target, max_length, sites), exact)

    def score_look(
        self, given: Input | Path, target: str | None, max_length: int, sites: Sequence[str] | None
    ) -> ScoredLook:
        """A look at the model while it reads an input, and the score of an answer."""
        writes = self.scored_form()
        read = self.read(given, max_length)
        answer = read.answer if target is None else writes.named(target, read.answer)
        if isinstance(answer, Answer):  # else a part of one, which the model need not read
            read = replace(read, answer=answer, inputs={**read.inputs, **writes.teach(answer)})
        sight = self.watch(read.inputs, sites)
        looked, inputs = self.look_of(read, sight, max_length), self.on_device(read.inputs)
        labels = writes.scored_labels(self.forward(inputs), answer)

        def score(copies: int) -> Tensor:
            return writes.score(self.model(**_copied(inputs, copies)), labels, copies)

        scored = (writes.scored_answer(labels, answer), writes.score_name)
        return ScoredLook(looked, sight.sites, self.input_places(read, looked, sight), score, scored)

    def scored_form(self) -> Any:
        """The form of its answers. Raises UserError for one whose answers have no score."""
        writes = self.processor.writes
        if not isinstance(writes, ScoredForm):
            raise UserError(f"{self.name}: its answers have no probability that a head could change")
        return writes

    def input_places(self, read: ReadInput, looked: LookResult, sight: Sight) -> list[InputPlaces]:
        """The places of the input that are keys in a look, which shows a sight of the model."""
        grid = find_grid(self.model, read.inputs)
        return input_places(looked, self.processor.reads.axis(read.value, read.prepared, grid))

    def read(self, given: Input | Path, max_length: int) -> ReadInput:
        """An input or the file of a path, and the model's answer. Raises UserError for one that cannot be looked at."""
        given = read_input(str(given), self.takes) if isinstance(given, Path) else given
        reads, writes = self.processor.reads, self.processor.writes
        value = reads.receive(given, self.name)
        prepared = reads.prepare(value)
        check_position_count(reads.title(given), reads.positions(prepared), self.most_positions)
        check_length(reads.places(prepared), max_length, f"the {reads.name}", reads.place_name)
        (answer,) = self.answer_prepared([prepared], writes.look_options())
        if isinstance(answer, Failure):
            raise UserError(answer.reason)
        answer.prefix = ()
        inputs = {**reads.tensors([prepared])[0], **writes.teach(answer)}
        return ReadInput(reads.title(given), value, prepared, answer, inputs)

    def look_of(self, read: ReadInput, sight: Sight, max_length: int) -> LookResult:
        """The look at the model that a sight is. Raises UserError where there is nothing to see."""
        reads, writes = self.processor.reads, self.processor.writes
        if not sight.sites:
            raise nothing_to_see(self.task, self.recipe.model, self.name)
        places = max(sight[site].shape[-1] for site in sight.sites)
        check_length(places, max_length, f"the {reads.name}", reads.place_name)
        grid = find_grid(self.model, read.inputs)
        names = writes.side_names(sight, reads.axis(read.value, read.prepared, grid), read.answer)
        notes = [self.name, *([read.answer.look_line] if read.answer.look_line else []), *read.answer.notes]
        if reads.longer_than_training(read.prepared):
            notes.append(f"The {reads.name} is longer than all of the training; the answer may be poor.")
        notes += sight.notes
        picture = self._picture_of(read.value, read.answer, sight, grid)
        return LookResult(cut_padding(sight, names), names, make_title(read.title), notes, picture)

    def watch(
        self,
        inputs: Mapping[str, Tensor],
        sites: Sequence[str] | None = None,
        measure: str = "weights",
        target: Target | None = None,
    ) -> Sight:
        """A sight of the model while it reads these inputs."""
        return look_at_maps(self.model, lambda: self.model(**self.on_device(inputs)), sites, measure, target)

    def picture(self, answer: Any) -> Picture | None:
        """Where the model looked for one of its answers; None if it does not attend."""
        reads, writes = self.processor.reads, self.processor.writes
        value, prepared, _ = self.fit(reads.open(answer.given))
        inputs = {**reads.tensors([prepared])[0], **writes.teach(answer)}
        found = self._picture_of(value, answer, self.watch(inputs), find_grid(self.model, inputs))
        return None if found is None else found()

    def _picture_of(
        self, value: Any, answer: Any, sight: Sight, grid: GridFinder
    ) -> Callable[[], Picture | None] | None:
        """Draws the input with the places that the model looked at; None where it does not attend."""
        if not sight.sites:
            return None
        reads, writes = self.processor.reads, self.processor.writes
        before = reads.before(sight[sight.sites[-1]].shape[-1], grid)

        def draw() -> Picture | None:
            rows = writes.rows(sight, self.model, answer, before)
            if not rows:
                return None
            return writes.draw(answer, value, rows, grid) or reads.draw(value, rows, answer.title, grid)

        return draw

    def maps(self, example: Any, answer: Any) -> list[Tensor]:
        """Where the model looks in the image of an example for each row of an answer, as weights of places (i, j)."""
        reads, writes = self.processor.reads, self.processor.writes
        inputs = {**reads.tensors([self.fit(reads.value(example)).prepared])[0], **writes.teach(answer)}
        sight, grid = self.watch(inputs), find_grid(self.model, inputs)
        if not sight.sites:
            return []
        rows = writes.rows(sight, self.model, answer, reads.before(sight[sight.sites[-1]].shape[-1], grid))
        return [torch.as_tensor(weights) for weights in map_weights(rows, grid)]


def _copied(inputs: Mapping[str, Tensor], copies: int) -> dict[str, Tensor]:
    """The inputs this many times; one without dimensions belongs to all."""
    return {name: torch.cat([value] * copies) if value.ndim else value for name, value in inputs.items()}
