"""What is said of a model that does not attend."""

from foveate.errors import UserError
from foveate.tasks.former.predictor import Predictor

NAMED = 3
"""How many presets that attend are named, at most."""


def nothing_to_see(predictor: Predictor, name: str) -> UserError:
    """The error for a model that does not attend; it names presets of the task that do, first those of its own family,
    then the smallest."""
    task, known = predictor.task.task, predictor.task.presets()
    family = known[predictor.task.model].family if predictor.task.model in known else ""
    found = [preset for preset in known.values() if preset.attends]
    found.sort(key=lambda preset: 0 if preset.family == family else preset.parameters)
    named = [preset.name for preset in found[:NAMED]]
    told = f"; presets of {task} that do: {', '.join(named)}" if named else ""
    return UserError(f"{name} does not attend: there is nothing to see{told}")
