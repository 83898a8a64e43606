"""An agent beside recorded episodes: does it do what was recorded?"""

from collections.abc import Iterable, Sequence

import numpy as np

from foveate.data.worlds.actions import space_of
from foveate.data.worlds.episodes import EpisodeProcessor, Recording
from foveate.errors import UserError
from foveate.tasks.former.predictor import Measured, Predictor

CLOSE = 0.1
"""How far each number of an action may be from the recorded one, of movements from -1 to 1."""


def compare(predictor: Predictor, recordings: Sequence[Recording]) -> Measured:
    """What the model does at each recorded step, beside what was recorded: the likeliest choice, or its movement."""
    processor: EpisodeProcessor = predictor.processor
    check_recordings(processor, recordings)
    answers, found = [], []
    for recording in recordings:
        outputs = predictor.forward(processor.batch([recording], None).inputs).logits[0].float().cpu()
        done = (outputs.argmax(-1) if processor.kind == "choices" else outputs.clamp(-1, 1)).numpy()
        found.append(done)
        answers.append(" ".join(map(str, done.tolist())))
    return Measured(answers, agreement(processor, recordings, found))


def mean_action(processor: EpisodeProcessor, recordings: Sequence[Recording]) -> dict[str, dict[str, float]]:
    """The trivial way to move: always by the mean of the recorded movements."""
    if processor.kind == "choices":
        return {}
    mean = np.mean([action for one in recordings for action in one.actions], 0)
    found = [np.tile(mean, (len(one.actions), 1)) for one in recordings]
    return {"the mean action": agreement(processor, recordings, found)}


def agreement(
    processor: EpisodeProcessor, recordings: Sequence[Recording], found: Sequence[np.ndarray]
) -> dict[str, float]:
    """The share of steps, and of whole episodes, that are as recorded; of movements also the root of the mean squared
    error of their numbers."""
    hits, squares = [], []
    for recording, done in zip(recordings, found, strict=True):
        recorded = np.array(recording.actions)
        if processor.kind == "choices":
            hits.append(done == recorded)
        else:
            hits.append((abs(done - recorded) <= CLOSE).all(-1))
            squares.append((done - recorded) ** 2)
    figures = {
        "success": 100 * float(np.mean([one.all() for one in hits])),
        "action_accuracy": 100 * float(np.concatenate(hits).mean()),
    }
    return figures | ({"action_error": float(np.concatenate(squares).mean() ** 0.5)} if squares else {})


def check_recordings(processor: EpisodeProcessor, recordings: Iterable[Recording]) -> None:
    """Raises UserError for actions that the agent does not have, and for images of another kind than it reads."""
    for one in recordings:
        if not processor.space.serves(space := space_of(one.actions)):
            raise UserError(f"{one.place} has {space}, but this agent has {processor.space}")
    first = next(iter(recordings))  # all have its size
    if processor.views == "pixels" and (channels := first.read().shape[-1]) != processor.channels:
        raise UserError(
            f"{first.place} has images of {channels} channels, but this agent reads {processor.channels} channels"
        )
