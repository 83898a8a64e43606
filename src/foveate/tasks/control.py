"""Control: an agent acts on what it sees, learned by imitation or from rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from torch import nn

from foveate.data.dataset import Dataset
from foveate.data.worlds.episodes import EpisodeProcessor, Level, Recording, fit_episodes, read_recordings
from foveate.data.worlds.grid_levels import ACTIONS
from foveate.errors import UserError
from foveate.tasks.acting.agents import Acted, InWorld, act_at_random, act_in_levels, success
from foveate.tasks.acting.examples import FRESH, Acting, Episodes, fit_levels
from foveate.tasks.acting.recordings import check_recordings, compare, mean_action
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Task
from foveate.training import Batches, Objective
from foveate.training.objectives.imitation import Imitation
from foveate.training.objectives.q_learning import QLearning
from foveate.viewer.protocol import Input, LookResult


@dataclass
class Control(Task[Architecture]):
    """Train an agent that imitates recorded episodes, or learns from rewards.

    `--config FILE` takes settings from a TOML or JSON file, in the tables of a trained model's config.json (examples,
    training, architecture, ...); a flag counts more than the file.
    """

    task = "control"
    unit = "actions"
    files = "FOLDER"
    metric = "success"
    processor = EpisodeProcessor
    options = Acting
    default_training = Training(
        epochs=10,
        learning_rate=3e-3,
        schedule="cosine",
        usual_warmup=100,
        label_smoothing=0.0,
        validate_every=1000,
        precision="float32",
    )

    examples: Annotated[Episodes, tyro.conf.arg(name="")] = field(default_factory=Episodes)
    model: str = "darqn-tiny"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/control")
    """Folder for the trained model; a training that it holds is resumed."""

    @classmethod
    def eval_options(cls, recipe: Any, where: str) -> InWorld:
        return InWorld()

    def read(self, paths: Sequence[Path]) -> Dataset[Recording]:
        return read_recordings(paths)

    def fit(self, train: Dataset[Any]) -> EpisodeProcessor:
        if self.examples.objective == "imitation":
            return fit_episodes(train, len(ACTIONS) if self.examples.source else 1, self.examples.views)
        return fit_levels(train, self.examples.actions, self.examples.views)

    def open(self) -> tuple[Dataset[Any], Dataset[Any]]:
        if self.examples.objective == "imitation":
            return super().open()
        splits = self.examples.levels()
        return splits.train, splits.dev

    def _model(self, sizes: Mapping[str, int]) -> nn.Module:
        self._agent = super()._model(sizes)
        return self._agent

    def batches(self, train: Dataset[Any], processor: EpisodeProcessor) -> Batches:
        """Recordings; or what the model itself does, which is made with the first batch."""
        chosen = self.examples
        if chosen.objective == "imitation":
            check_recordings(processor, train)
            return super().batches(train, processor)
        from foveate.tasks.acting.replay import ReplayBatches

        settings = chosen.batch, chosen.explore, chosen.discount, self.training.seed
        return ReplayBatches(lambda: self._agent, processor, list(train), *settings)

    def objective(self) -> Objective:
        return Imitation(super().objective()) if self.examples.objective == "imitation" else QLearning()

    def examples_to_measure(self, data: Sequence[Path], options: InWorld) -> Dataset[Any]:
        """New levels of a world where one is named."""
        if options.world is None:
            learned = self.examples.objective == "q" and not data
            return self.examples.levels().test if learned else super().examples_to_measure(data, options)
        levels = [Level(options.world, FRESH + number) for number in range(options.episodes)]
        return Dataset(options.world, levels, "levels")

    def answer(self, predictor: Predictor, texts: Sequence[str], options: Acting) -> list[Acted]:
        """What the agent does in a level of each world that is named, such as babyai/GoToLocal."""
        options.check()
        levels = [Level(text, options.seed) for text in texts]
        return act_in_levels(predictor, levels, options.width, options.likeliest)

    def measure(self, predictor: Predictor, examples: Sequence[Any], options: InWorld) -> Measured:
        """Levels: the share whose goal is reached. Recordings: the share in which every action is as recorded."""
        if not isinstance(examples[0], Level):
            return compare(predictor, examples)
        found = act_in_levels(predictor, examples, 1, options.likeliest)
        if options.picture is not None:
            _animate(predictor, found[0], options.picture)
        return Measured([one.line for one in found], success(found))

    def baselines(self, predictor: Predictor, examples: Sequence[Any], options: InWorld) -> dict[str, dict[str, float]]:
        """Random actions, in as many levels; beside recorded movements, their mean."""
        if not isinstance(examples[0], Level):
            return mean_action(predictor.processor, examples)
        generator = np.random.default_rng(1)
        return {"random actions": success([act_at_random(one, predictor.processor, generator) for one in examples])}

    def picture(self, predictor: Predictor, prediction: Acted) -> Any:
        """What the agent saw at each step, under its attention."""
        from foveate.tasks.looking.worlds import watch_episode
        from foveate.viewer.episodes import draw

        _, views, weights = watch_episode(predictor, prediction)
        return draw(views, weights, prediction.names, prediction.instruction)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.worlds import look_at_episode

        return look_at_episode(predictor, given, max_length, sites)


def _animate(predictor: Predictor, acted: Acted, path: Path) -> None:
    from foveate.tasks.looking.worlds import watch_episode
    from foveate.viewer.episodes import write_gif

    title = f"{acted.instruction} ({acted.end})"
    try:
        write_gif(path, *watch_episode(predictor, acted), acted.names, title)
    except OSError as error:
        raise UserError(f"could not write {path}: {error.strerror}") from None
