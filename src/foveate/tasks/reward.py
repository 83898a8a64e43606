"""Reward models: a number for a text, learned from pairs of which people like the first text better."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from foveate.data import TRAINERS, Tokens, text_batches
from foveate.data.dataset import Dataset
from foveate.data.text.preferences import Preference, PreferenceProcessor, read_preferences
from foveate.errors import UserError
from foveate.tasks.examples.data_options import check_vocabulary
from foveate.tasks.former.predictor import Measured, Predictor
from foveate.tasks.former.recipe import Architecture, Training
from foveate.tasks.former.task import Examples, Task
from foveate.tasks.protocols import NoOptions
from foveate.training import Objective
from foveate.training.objectives.preferences import BradleyTerry

MOST_TOKENS = 8192
"""Tokens of texts that are judged together."""

SAME = 1e-6
"""Rewards that differ by less are equal."""


@dataclass
class Pairs(Examples):
    """Which pairs to learn from, better<TAB>worse on each line, and how texts become tokens."""

    tokens: Tokens = "subwords"
    """What a text is cut into."""
    vocabulary: int = 4000
    """How many of them to learn, at most."""
    lowercase: bool = True
    """Read lower case only."""
    batch: int = 4096
    """Tokens of a batch."""

    def check(self) -> None:
        super().check()
        check_vocabulary(self.vocabulary)


@dataclass
class Reward:
    """What a text is worth."""

    text: str
    reward: float

    @property
    def line(self) -> str:
        """The reward; nothing for an empty text."""
        return f"{self.reward:.3f}" if self.text.strip() else ""


@dataclass
class TrainReward(Task[Architecture]):
    """Train a reward model: the better text of each pair is to get the larger number.

    `foveate train rlhf` then tunes a language model to please it. `--config FILE` takes settings from a TOML or JSON
    file; a flag counts more than the file.
    """

    task = "reward"
    unit = "pairs"
    files = "FILE"
    processor = PreferenceProcessor
    default_training = Training(
        usual_epochs=3,
        learning_rate=2e-3,
        schedule="linear",
        usual_warmup=50,
        validate_every=100,
        save_every=100,
    )

    examples: Annotated[Pairs, tyro.conf.arg(name="")] = field(default_factory=Pairs)
    model: str = "rnn-attentive-classifier"
    """The preset to begin from: see `foveate models`."""
    out: Path = Path("runs/reward")
    """Folder for the trained model; a training that it holds is resumed."""

    def read(self, paths: Sequence[Path]) -> Dataset[Preference]:
        return read_preferences(paths)

    def fit(self, train: Dataset[Preference]) -> PreferenceProcessor:
        chosen = self.examples
        texts = (text for example in train for text in (example.better, example.worse))
        return PreferenceProcessor(TRAINERS[chosen.tokens](texts, chosen.vocabulary, chosen.lowercase))

    def objective(self) -> Objective:
        return BradleyTerry()

    def answer(self, predictor: Predictor, texts: Sequence[str], options: NoOptions) -> list[Reward]:
        return [Reward(text, reward) for text, reward in zip(texts, rewards(predictor, texts), strict=True)]

    def measure(self, predictor: Predictor, examples: Sequence[Preference], options: NoOptions) -> Measured:
        """The share of pairs whose better text has the larger reward."""
        better = rewards(predictor, [example.better for example in examples])
        worse = rewards(predictor, [example.worse for example in examples])
        right = sum(one > other for one, other in zip(better, worse, strict=True))
        answers = [f"{one:.3f}\t{other:.3f}" for one, other in zip(better, worse, strict=True)]
        return Measured(answers, {"accuracy": 100 * right / len(examples)})

    def baselines(
        self, predictor: Predictor, examples: Sequence[Preference], options: NoOptions
    ) -> dict[str, dict[str, float]]:
        longer = sum(len(one.better) > len(one.worse) for one in examples)
        return {"the longer text": {"accuracy": 100 * longer / len(examples)}}

    def picture(self, predictor: Predictor, prediction: Reward) -> Any:
        """Where a model with attention pooling looked."""
        from foveate.sight import look
        from foveate.viewer import Alignment, plot_alignments

        inputs, pieces = model_inputs(predictor, prediction.text)
        with torch.inference_mode(), look(predictor.model) as sight:
            predictor.forward(inputs)
        if not sight.sites:
            return None
        weights = sight[sight.sites[-1]].weights()[0].mean((0, 1))[None]
        return plot_alignments([Alignment(weights.cpu(), [prediction.line], pieces, sight.sites[-1])])


def model_inputs(predictor: Predictor, text: str) -> tuple[dict[str, torch.Tensor], list[str]]:
    """The model's inputs for one text, and names of its places. Raises UserError for an empty text."""
    (tokens,) = predictor.processor.tokenizer.encode([text])
    if not tokens:
        raise UserError("the text is empty: there is nothing to look at")
    ((_, inputs),) = text_batches([tokens], predictor.processor.tokenizer, MOST_TOKENS)
    return inputs, ["<start>", *predictor.processor.tokenizer.pieces(tokens)]


def rewards(predictor: Predictor, texts: Sequence[str]) -> list[float]:
    """The reward of each text, in their order."""
    found = [0.0] * len(texts)
    tokenizer = predictor.processor.tokenizer
    for places, inputs in text_batches(tokenizer.encode(list(texts)), tokenizer, MOST_TOKENS):
        for place, reward in zip(places, predictor.forward(inputs).logits.flatten().tolist(), strict=True):
            found[place] = reward
    return found


def check_rewards(predictor: Predictor, texts: Sequence[str], folder: Path) -> None:
    """Raise UserError for a reward model from which nothing can be learned: it gives these texts the same reward, or
    one that is not finite."""
    found = rewards(predictor, texts)
    for text, reward in zip(texts, found, strict=True):
        if not math.isfinite(reward):
            raise UserError(f"{folder} gives '{text}' the reward {reward}: train it anew, at a lower learning_rate")
    if len(set(texts)) > 1 and max(found) - min(found) < SAME:
        raise UserError(
            f"{folder} gives {len(texts)} sentences the same reward, {found[0]:.3g}: there is nothing to learn from it"
        )
