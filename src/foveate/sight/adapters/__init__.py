"""The ways in which models attend, each with a door through which it is seen while a look is open."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from foveate.sight.adapters import flash, foveate, transformers
from foveate.sight.adapters.functions import Functions
from foveate.sight.call_adapter import Translator
from foveate.sight.recorder import Recorder


@contextmanager
def attach_all(recorder: Recorder) -> Iterator[None]:
    """Let the recorder see every way to attend while open."""
    translator = Translator()
    with ExitStack() as stack:
        stack.enter_context(foveate.attach(recorder))
        stack.enter_context(transformers.attach(recorder, translator))
        stack.enter_context(flash.attach(recorder, translator))
        stack.enter_context(Functions(recorder, translator))
        yield
