"""The ways in which models attend, each with a door through which it is seen while a look is open."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from foveate.sight.doors import flash, own, transformers
from foveate.sight.doors.functions import Functions
from foveate.sight.foreign import Translator
from foveate.sight.recorder import Recorder


@contextmanager
def opened(recorder: Recorder) -> Iterator[None]:
    """Let the recorder see every way to attend while open."""
    translator = Translator()
    with ExitStack() as stack:
        stack.enter_context(own.door(recorder))
        stack.enter_context(transformers.door(recorder, translator))
        stack.enter_context(flash.door(recorder, translator))
        stack.enter_context(Functions(recorder, translator))
        yield
