"""What every task does, whatever its page says: it finds its examples, trains a model of them and saves it.

A page subclasses `Task` and its `Examples`, and has one row in `foveate.tasks.TASKS`. What it can say is in
`tasks/page.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from foveate.data import Splits
from foveate.data.dataset import Dataset
from foveate.errors import UserError
from foveate.tasks.examples.data_options import FEWEST, held_out_every
from foveate.tasks.examples.example_source import Examples
from foveate.tasks.former.page import Page
from foveate.tasks.former.predictor import Predictor
from foveate.tasks.former.recipe import Architecture
from foveate.training import Batches, Callback, Validation, main_process, train
from foveate.training.identity import CONTENT, HELD_OUT

__all__ = ["Examples", "Task"]


@dataclass(kw_only=True)
class Task(Page[Architecture]):
    """The settings of a training, from which flags, config file and help are derived, and what the task does."""

    def check_length(self, model: nn.Module) -> None:
        """Only the data tells how long examples are."""

    @cached_property
    def _digests(self) -> dict[str, str]:
        given = (self.examples.data, self.examples.validation)
        parts = [paths for paths in given if paths and all(path.exists() for path in paths)]
        self._read_for_digest.update((paths, self.read(paths)) for paths in parts)
        return {", ".join(map(str, paths)): self._read_for_digest[paths].digest() for paths in parts}

    @cached_property
    def _read_for_digest(self) -> dict[Sequence[Path], Dataset[Any]]:
        """The user's examples, which are not read a second time to learn from."""
        return {}

    def _read_once(self, paths: Sequence[Path]) -> Dataset[Any]:
        return self._read_for_digest.pop(paths, None) or self.read(paths)

    def example_contents(self) -> dict[str, str]:
        """A digest of the user's examples, as they are now."""
        return self._digests

    def open(self) -> tuple[Dataset[Any], Dataset[Any]]:
        """What to learn from and what to validate on. Raises UserError where there is nothing."""
        chosen = self.examples
        validation = self._read_once(chosen.validation) if chosen.validation else None
        if chosen.source is not None:
            splits = self.open_source(chosen.source)
            return splits.train, validation or splits.dev
        if not chosen.data:
            raise UserError(f"nothing to learn from: name a source (see `foveate data`) or give --data {self.files}")
        train = self._read_once(chosen.data)
        if validation is not None:
            return train, validation
        if len(train) < FEWEST:
            raise UserError(
                f"{train.name} has {len(train)} {train.unit}, too few to hold some out; give --validation {self.files}"
            )
        return self.hold_out(train, held_out_every(len(train)))

    def learn(
        self,
        splits: Splits[Any] | None = None,
        console: Console | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Predictor:
        """Train the model on the task's data, or on the given `splits`, and save it in `out`.

        `callbacks` are called with each row of `metrics.jsonl`, a table of plain values.

        Raises UserError for anything in the settings or the data that cannot work, before the training.
        """
        console = self.console(console)
        self.check()
        train, validation = (splits.train, splits.dev) if splits else self.open()
        for part in (train, validation):
            console.print(part.report, markup=False, highlight=False)
        self.check_examples(train, validation)
        for line in self.advice(train):
            console.print(line, markup=False, highlight=False)
        trained = self.trained_processor()
        processor = self.fit(train) if trained is None else self.grow(trained, train)
        batches = self.batches(train, processor)
        for report in (processor.report, getattr(batches, "report", "")):
            if report:
                console.print(report, markup=False, highlight=False)
        model = self._model(processor.sizes())
        console.print(self.summary(model, processor.summary), markup=False, highlight=False)
        predictor = Predictor(self, model, processor, self.description(model))
        self._try_first_batch(model, batches)
        parts = () if self.examples.data else (train, validation)
        by_name: dict[str, Any] = {f"examples{CONTENT}{part.name})": part.digest() for part in parts}
        if self.examples.data and not self.examples.validation and splits is None:
            by_name[HELD_OUT] = held_out_every(len(train) + len(validation))
        validate = self.validation(predictor, validation, console)
        self._train(predictor, batches, validate, by_name, console, callbacks)
        return predictor

    def _model(self, sizes: Mapping[str, int]) -> nn.Module:
        """The model with the sizes of the data that its config has fields for, in the fastest layout for images."""
        known = {part.name for part in fields(self.architecture)}  # type: ignore[arg-type]
        model = self.build(**{name: size for name, size in sizes.items() if name in known})
        return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _try_first_batch(self, model: nn.Module, batches: Batches) -> None:
        """Raise UserError before the training where the model cannot read such examples."""
        with torch.no_grad():
            for batch in batches.epoch(0):
                model.eval()(**batch.select(slice(0, 1)).inputs)
                break
        model.train()

    def _train(
        self,
        predictor: Predictor,
        batches: Batches,
        validation: Validation,
        by_name: Mapping[str, Any],
        console: Console,
        callbacks: Sequence[Callback],
    ) -> None:
        objective, identity = self.objective(), self.identity() | dict(by_name)
        told: dict[str, Any] = {"identity": identity, "console": console, "unit": self.unit, "callbacks": callbacks}

        def begin() -> None:
            if self.usable_before_the_end:
                predictor.save_unfinished(self.out)

        def end() -> None:
            self.finish(predictor.model)
            if main_process():
                predictor.save(self.out)

        train(predictor.model, batches, objective, self.training, self.out, validation, **told, begin=begin, end=end)
