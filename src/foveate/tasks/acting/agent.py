"""An agent in use: it acts in levels of a world."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from foveate.contracts import Picture
from foveate.data.dataset import Dataset
from foveate.data.worlds.episodes import Level
from foveate.errors import UserError
from foveate.forms.actions import ActionValues, ActOptions, LevelActions, WorldOptions
from foveate.forms.inputs import check_length
from foveate.sight import Sight
from foveate.sight.measured_look import OF_AN_ANSWER, Target
from foveate.tasks.acting.episodes import Retraced, retrace, stream_and_view, watch_episode, watch_steps
from foveate.tasks.acting.replay import ReplayBatches
from foveate.tasks.effects import InputPlaces, ScoredLook, ShownPlaces
from foveate.tasks.skill import Skill
from foveate.tasks.task import nothing_to_see
from foveate.training import Batches, Objective
from foveate.training.objectives.q_learning import QLearning
from foveate.viewer.protocol import Input, LookResult
from foveate.viewer.sides import Image, SidePair, make_sides

FRESH = 3_000_000
"""First seed of the levels that are named by their world only."""


class Agent(Skill):
    """An agent: what it learned from rewards it does not draw, and its looks have a map for each view."""

    @property
    def learns_from_rewards(self) -> bool:
        """Whether its actions are values, of which the best is taken."""
        return bool(self.recipe.examples.objective == "q")

    def answers_as_they_come(self, prepared: Sequence[Any], options: Any) -> Iterator[tuple[int, Any]]:
        chosen = replace(options, likeliest=True) if self.learns_from_rewards else options
        return super().answers_as_they_come(prepared, chosen)

    # -- learning

    def batches(self, train: Dataset[Any]) -> Batches:
        """Recordings; or what the model itself does."""
        reads, writes, chosen = self.processor.reads, self.processor.writes, self.recipe.examples
        if not self.learns_from_rewards:
            writes.check_recordings(reads, train)
            return super().batches(train)
        settings = chosen.batch, chosen.explore, chosen.discount, self.recipe.training.seed
        return ReplayBatches(self.model, reads, writes.count, list(train), *settings)

    def objective(self) -> Objective:
        return QLearning() if self.learns_from_rewards else super().objective()

    # -- measuring

    def test_examples(self, data: Sequence[Path], options: WorldOptions) -> Dataset[Any]:
        """New levels of a world where one is named."""
        if options.world is not None:
            levels = [Level(options.world, FRESH + number) for number in range(options.episodes)]
            return Dataset(options.world, levels, "levels")
        made = None if data or self.task.generate is None else self.task.generate(self.recipe)
        return super().test_examples(data, options) if made is None else made.test

    def measure(
        self, examples: Sequence[Any], options: WorldOptions, console: Console | None = None
    ) -> tuple[list[str], dict[str, float]]:
        if not isinstance(examples[0], Level):
            self.processor.writes.check_recordings(self.processor.reads, examples)
        answers = self.answer_examples(examples, options, console)
        if options.picture is not None and isinstance(answers[0], LevelActions):
            self._animate(answers[0], options.picture)
        return [one.line for one in answers], self.processor.writes.metrics(answers, examples)

    def _animate(self, acted: LevelActions, path: Path) -> None:
        from foveate.viewer.episodes import write_gif  # imports matplotlib, which takes a while

        try:
            write_gif(path, *watch_episode(self, acted), acted.names, f"{acted.instruction} ({acted.end})")
        except OSError as error:
            raise UserError(f"could not write {path}: {error.strerror}") from None

    # -- looking

    def picture(self, answer: LevelActions) -> Picture:
        """What the agent saw at each step, under its attention."""
        from foveate.viewer.episodes import draw  # imports matplotlib, which takes a while

        _, views, weights = watch_episode(self, answer)
        return draw(views, weights, answer.names, answer.instruction)

    def look(
        self, given: Input | Path, max_length: int = 4096, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """A look at the agent in a level: a map for each view. Raises UserError for an input that is not a level."""
        acted = self._act(given)
        read = retrace(self, acted)
        target = self._target(read.inputs, acted) if measure in OF_AN_ANSWER else None
        return self._look_at(given, acted, read, watch_steps(self, read.inputs, sites, measure, target), max_length)

    def score_look(
        self, given: Input | Path, target: str | None, max_length: int, sites: Sequence[str] | None
    ) -> ScoredLook:
        """A look at the agent in a level, and the score of its actions there; the places are those of a view, and one
        is taken out of all views."""
        writes, acted = self.scored_form(), self._act(given)
        answer, read = acted if target is None else writes.named(target, acted), retrace(self, acted)
        sight = watch_steps(self, read.inputs, sites)
        looked = self._look_at(given, acted, read, sight, max_length)
        labels = writes.scored_labels(self.forward(read.inputs), answer)

        def score(copies: int) -> Tensor:
            output = self.model(**{name: torch.cat([one] * copies) for name, one in read.inputs.items()})
            return writes.score(output, labels, copies)

        first, modules = sight.sites[0], [*dict.fromkeys(name.partition("#")[0] for name in sight.sites)]
        _, side = make_sides(looked.tokens, first, *sight[first].shape[2:])
        places = InputPlaces(modules, [ShownPlaces(first, side, range(side.count), range(side.count))])
        return ScoredLook(
            looked, sight.sites, [places], score, (writes.scored_answer(labels, answer), writes.score_name)
        )

    def scored_form(self) -> Any:
        """Choices have a probability, or a value where the agent learned from rewards; movements have neither."""
        writes = self.processor.writes
        if writes.kind == "numbers":
            raise UserError(f"{self.name}: its movements are numbers, without a probability that a head could change")
        return ActionValues() if self.learns_from_rewards else writes

    def _target(self, inputs: dict[str, Tensor], acted: LevelActions) -> Target:
        """The score of the actions, for gradients."""
        writes = self.scored_form()
        labels = writes.scored_labels(self.forward(inputs), acted)
        return lambda output: writes.score(output, labels)

    def _act(self, given: Input | Path) -> LevelActions:
        """What the agent does in a level. Raises UserError for an input that is not a level."""
        reads = self.processor.reads
        (acted,) = self.answer_prepared([reads.prepare(reads.receive(given, self.name))], ActOptions())
        if not isinstance(acted, LevelActions):
            raise UserError(acted.reason)
        return acted

    def _look_at(
        self, given: Input | Path, acted: LevelActions, read: Retraced, sight: Sight, max_length: int
    ) -> LookResult:
        """The look that a sight of an episode is."""
        _, views, (rows, columns), streams = read
        if not sight.sites:
            raise nothing_to_see(self.task, self.recipe.model, self.name)
        check_length(rows * columns, max_length, "a view", "places")
        names: dict[str, SidePair] = {}
        for site in sight.sites:
            stream, number = stream_and_view(site)
            same = [step for step, (view, _) in enumerate(streams[stream]) if view == number]
            actions = [f"{step + 1}. {acted.names[step]}" for step in same]
            names[site] = (actions, Image.of(views[same[0]], rows, columns))
        notes = [self.name, f"Actions: {acted.line.replace(chr(9), ' | ')}", *sight.notes]
        title = f"{str(given).strip()}: {acted.instruction}"
        return LookResult(sight, names, title, notes, lambda: self.picture(acted))
