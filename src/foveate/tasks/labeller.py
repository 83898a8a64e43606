"""A skill that gives labels, beside what simple ways learn from the same training data."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from foveate.tasks.skill import Skill
from foveate.tasks.training_data import lost


class Labeller(Skill):
    """Gives labels, and is compared with simple ways to find them."""

    compared: ClassVar[int] = 5000
    """Training examples, from all over the data, that the simple ways learn from, at most."""

    def simple_ways(
        self, known: Sequence[Any], labels: Sequence[Sequence[str]], asked: Sequence[Any]
    ) -> Mapping[str, Sequence[Sequence[str]]]:
        """The labels of each asked example, by the name of the way that learned them from `known` and its `labels`."""
        raise NotImplementedError

    def baselines(self, examples: Sequence[Any], options: Any) -> dict[str, dict[str, float]]:
        """The simple ways, where the training data are still there, and the most frequent label."""
        found = {}
        if not lost(self):
            writes, known = self.processor.writes, self.train_examples().some(self.compared)
            ways = self.simple_ways(known, [writes.labels_of(one) for one in known], examples)
            found = {way: writes.metrics_of(answers, examples) for way, answers in ways.items()}
        return {**found, **super().baselines(examples, options)}

    def notes(self, examples: Sequence[Any]) -> list[str]:
        why = lost(self)
        return [*super().notes(examples), *([f"not compared with simple ways to learn it: {why}"] if why else [])]
