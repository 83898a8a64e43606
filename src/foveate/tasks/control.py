"""Control: an agent acts on what it sees, learned by imitation or from rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch import nn

from foveate.data.dataset import Dataset
from foveate.data.episodes import EpisodeProcessor, Level, Recording, fit_episodes, read_recordings
from foveate.data.grid_levels import ACTIONS, GridLevel, channels_of
from foveate.decoding.acting import Episode, act
from foveate.errors import UserError, at_least, printable
from foveate.tasks.control_examples import FRESH, Acting, Episodes, fit_levels
from foveate.tasks.predictor import Measured, Predictor
from foveate.tasks.recipe import Architecture
from foveate.tasks.task import Task
from foveate.training import Batches, Objective, Training
from foveate.training.q_learning import QLearning
from foveate.viewer.protocol import Input, LookResult

MOST_STEPS = 500
"""Actions of the longest episode; most levels end earlier."""

BATCH = 128
"""Levels that are acted in together."""


@dataclass
class InWorld:
    """Where to measure."""

    world: str | None = None
    """Act in new levels of this world, such as babyai/GoToLocal, instead of the test part."""
    episodes: int = 500
    """How many levels of the world."""
    likeliest: bool = False
    """Take the likeliest action at each step, instead of drawing it."""
    picture: Path | None = None
    """Also write the first episode as an animation (.gif): the level, and what the agent looked at."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        at_least(1, "episodes", self.episodes)
        if self.picture is not None and self.picture.suffix.lower() != ".gif":
            raise UserError(f"{self.picture}: an episode is written as .gif")


@dataclass
class Acted:
    """What an agent did in a level."""

    level: Level
    instruction: str
    actions: list[int]
    succeeded: bool

    @property
    def line(self) -> str:
        """The instruction, the actions and whether the goal was reached, with tabs between them."""
        done = ", ".join(ACTIONS[one] for one in self.actions)
        return f"{printable(self.instruction)}\t{done}\t{'reached' if self.succeeded else 'not reached'}"


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
            return super().batches(train, processor)
        from foveate.tasks.replay import ReplayBatches

        settings = chosen.batch, chosen.explore, chosen.discount, self.training.seed
        return ReplayBatches(lambda: self._agent, processor, list(train), *settings)

    def objective(self) -> Objective:
        return super().objective() if self.examples.objective == "imitation" else QLearning()

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
        return _play(predictor, [Level(text, options.seed) for text in texts], options.width, options.likeliest)

    def measure(self, predictor: Predictor, examples: Sequence[Any], options: InWorld) -> Measured:
        """Levels: the share whose goal is reached. Recordings: the share in which every action is as recorded."""
        if not isinstance(examples[0], Level):
            return _compare(predictor, examples)
        found = _play(predictor, examples, 1, options.likeliest)
        if options.picture is not None:
            _animate(predictor, found[0], options.picture)
        return Measured([one.line for one in found], _success(found))

    def baselines(self, predictor: Predictor, examples: Sequence[Any], options: InWorld) -> dict[str, dict[str, float]]:
        """Random actions, in as many levels."""
        if not isinstance(examples[0], Level):
            return {}
        generator, found = np.random.default_rng(1), list[Acted]()
        for level in examples:
            world, done = GridLevel(level.world, level.seed), False
            actions: list[int] = []
            while not done and len(actions) < MOST_STEPS:
                actions.append(int(generator.integers(predictor.processor.actions)))
                done = world.act(actions[-1])
            found.append(Acted(level, world.instruction, actions, world.reward > 0))
        return {"random actions": _success(found)}

    def picture(self, predictor: Predictor, prediction: Acted) -> Any:
        """What the agent saw at each step, under its attention."""
        from foveate.tasks.looking.worlds import watch_episode
        from foveate.viewer.episodes import draw

        _, views, weights = watch_episode(predictor, prediction)
        return draw(views, weights, [ACTIONS[one] for one in prediction.actions], prediction.instruction)

    def look(
        self, predictor: Predictor, given: Input, max_length: int, sites: Sequence[str] | None = None
    ) -> LookResult:
        from foveate.tasks.looking.worlds import look_at_episode

        return look_at_episode(predictor, given, max_length, sites)


def _play(predictor: Predictor, levels: Sequence[Level], width: int, likeliest: bool) -> list[Acted]:
    """What the model does in each level. Raises UserError for a model of another world."""
    processor: EpisodeProcessor = predictor.processor
    channels = channels_of(processor.views)
    if processor.actions > len(ACTIONS) or processor.channels != channels:
        raise UserError(
            f"this agent has {processor.actions} actions and reads images of {processor.channels} channels, "
            f"but levels of minigrid have {len(ACTIONS)} actions and images of {channels} channels"
        )
    found = []
    model: Any = predictor.model
    draws = width == 1 and not likeliest and predictor.task.examples.objective == "imitation"
    generator = torch.Generator().manual_seed(1) if draws else None
    for begin in range(0, len(levels), BATCH):
        group = levels[begin : begin + BATCH]
        worlds = [GridLevel(level.world, level.seed, processor.views) for level in group]
        inputs = predictor.on_device(processor.inputs([world.instruction for world in worlds]))
        episodes: list[Episode] = act(model, inputs, worlds, MOST_STEPS, width, generator)
        for level, episode in zip(group, episodes, strict=True):
            world: Any = episode.world
            found.append(Acted(level, world.instruction, episode.actions, world.reward > 0))
    return found


def _success(found: Sequence[Acted]) -> dict[str, float]:
    reached = [len(one.actions) for one in found if one.succeeded]
    return {
        "success": 100 * len(reached) / max(len(found), 1),
        "actions_when_reached": sum(reached) / len(reached) if reached else float("nan"),
    }


def _compare(predictor: Predictor, recordings: Sequence[Recording]) -> Measured:
    """The likeliest action at each recorded step, beside the recorded one."""
    answers, whole, right, total = [], 0, 0, 0
    for recording in recordings:
        _check_recording(predictor.processor, recording)
        batch = predictor.processor.batch([recording], None)
        likeliest = predictor.forward(batch.inputs).logits[0].argmax(-1).tolist()
        hits = sum(one == other for one, other in zip(likeliest, recording.actions, strict=True))
        right, total, whole = right + hits, total + len(likeliest), whole + (hits == len(likeliest))
        answers.append(" ".join(map(str, likeliest)))
    return Measured(answers, {"success": 100 * whole / len(recordings), "action_accuracy": 100 * right / total})


def _check_recording(processor: EpisodeProcessor, recording: Recording) -> None:
    """Raises UserError for a recording of another world than the model's."""
    actions, channels = max(recording.actions) + 1, recording.read().shape[-1]
    if actions > processor.actions or (processor.views == "pixels" and channels != processor.channels):
        raise UserError(
            f"{recording.place} has {actions} actions and images of {channels} channels, "
            f"but this agent has {processor.actions} actions and reads {processor.channels} channels"
        )


def _animate(predictor: Predictor, acted: Acted, path: Path) -> None:
    from foveate.tasks.looking.worlds import watch_episode
    from foveate.viewer.episodes import write_gif

    title = f"{acted.instruction} ({'reached' if acted.succeeded else 'not reached'})"
    try:
        write_gif(path, *watch_episode(predictor, acted), [ACTIONS[one] for one in acted.actions], title)
    except OSError as error:
        raise UserError(f"could not write {path}: {error.strerror}") from None
