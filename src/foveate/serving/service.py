"""A skill that answers the inputs of requests: texts as they are, and files that came with them."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from foveate.decoding import Pending
from foveate.files import workshop
from foveate.forms.answers import Answer, Failure, answer_values
from foveate.serving.batches import Batcher
from foveate.serving.joined import JoinedAnswers
from foveate.viewer.protocol import File, Input

OUT = "out"
"""The option that names the file that an answer is written into: a drawing, a sound."""


@dataclass(frozen=True)
class ServiceLimits:
    """Upper limits of what a service accepts."""

    batch: int = 64
    """Inputs that are answered together."""
    wait: float = 0.002
    """Seconds that an input may wait for others."""
    inputs: int = 256
    """Inputs of a request."""
    bytes: int = 16 * 2**20
    """Bytes of a request."""
    waiting: int = 1024
    """Requests that may wait for the model."""
    seconds: float = 60.0
    """Time until a request is given up."""
    places: int = 4096
    """Places, such as tokens, of an input that is looked at."""
    weights: int = 2**18
    """Weights in the answer to one look."""


class Service:
    """A skill in use by many clients."""

    def __init__(self, skill: Any, options: Any, limits: ServiceLimits) -> None:
        """`options` are those of `foveate run`, which requests change."""
        self.skill, self.options, self.limits = skill, options, limits
        self.on_batch: Callable[[int], object] = lambda size: None
        """Called with the number of inputs of each batch; where a request joins, with that of answers being written."""
        joined = JoinedAnswers(self._begin, limits.batch, lambda size: self.on_batch(size))
        self._batcher = Batcher(self._run, limits.batch, limits.wait, limits.waiting, joined)

    @property
    def waiting(self) -> int:
        """Requests that wait for the model."""
        return self._batcher.waiting

    def answer(self, inputs: Sequence[Input], options: Any, wanted: Callable[[], bool] = lambda: True) -> Future:
        """A future of the answers as JSON values. Raises Busy where too many requests wait."""
        return self._batcher.submit(inputs, options, wanted, depends_on_others(options))

    def compute(self, task: Callable[[], Any], wanted: Callable[[], bool] = lambda: True) -> Future:
        """A future of a list with one value, which a task makes that needs the model. Raises Busy likewise."""
        return self._batcher.submit([task], None, wanted, alone=True)

    # -- in the thread of the model

    def _begin(self, inputs: Sequence[Any], options: Any) -> Pending | None:
        shared = hasattr(self.skill, "begin")  # a model that writes token by token, beside other requests
        if not shared or options is None or isinstance(inputs[0], File) or hasattr(options, OUT):
            return None
        pending: Pending | None = self.skill.begin(inputs, options)
        if pending is None:
            return None
        finish = pending.finish
        return replace(
            pending,
            finish=lambda: [_values(one, one, answer, None) for one, answer in zip(inputs, finish(), strict=True)],
        )

    def _run(self, inputs: Sequence[Any], options: Any) -> Sequence[Any]:
        if options is None:
            return [task() for task in inputs]
        self.on_batch(len(inputs))
        with_files = isinstance(inputs[0], File) or hasattr(options, OUT)
        with workshop(Path(gettempdir())) if with_files else nullcontext() as place:
            if place is None or not hasattr(options, OUT):
                return self._answers(inputs, options, place)
            return [value for one in inputs for value in self._drawn(one, options, place)]

    def _answers(self, inputs: Sequence[Input], options: Any, place: Path | None) -> list[dict[str, Any]]:
        given = [_argument(one, place, number) for number, one in enumerate(inputs)]
        answers = self.skill.answer(given, options)
        return [
            _values(one, argument, answer, place) for one, argument, answer in zip(inputs, given, answers, strict=True)
        ]

    def _drawn(self, given: Input, options: Any, place: Path) -> list[dict[str, Any]]:
        """The answer to an input, with the file that the model makes for it."""
        out = place / Path(getattr(options, OUT)).name
        out.unlink(missing_ok=True)
        (values,) = self._answers([given], replace(options, **{OUT: out}), place)
        if not out.is_file():
            return [values]
        return [{**values, "file": {"name": out.name, "data": base64.b64encode(out.read_bytes()).decode()}}]


def depends_on_others(options: Any) -> bool:
    """Whether answers depend on what is answered with them: what is drawn at random, or compared with the others."""
    calibrate = getattr(getattr(options, "prompting", None), "calibrate", "no")
    decoding = getattr(options, "decoding", None)
    searches = decoding is not None and (decoding.method != "sample" or not decoding.temperature)
    return (hasattr(options, "seed") and not searches) or calibrate == "batch"


def _argument(given: Input, place: Path | None, number: int) -> str:
    """An input as an argument of `foveate run`; a file is written to where only this process looks."""
    if not isinstance(given, File):
        return given
    assert place is not None
    name = re.sub(r"[^\w.-]", "_", Path(given.name).name)[-80:] or "input"
    path = place / f"{number}-{name}"
    path.write_bytes(given.data)
    return f"{path}\t{given.question}" if given.question else str(path)


def _values(given: Input, argument: str, answer: Answer | Failure, place: Path | None) -> dict[str, Any]:
    """The input and the answer to it as JSON values, with names of files instead of their temporary places."""
    name = given.name if isinstance(given, File) else given
    values = answer_values(name, answer)
    if isinstance(given, File) and given.question:
        values["question"] = given.question
    if place is None:
        return values
    names = {argument.partition("\t")[0]: name} if isinstance(given, File) else {}
    return {part: _renamed(value, {**names, f"{place}/": ""}) for part, value in values.items()}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {part: _renamed(own, names) for part, own in value.items()}
    if isinstance(value, list):
        return [_renamed(own, names) for own in value]
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    for known, name in names.items():
        text = text.replace(known, name)
    return text
