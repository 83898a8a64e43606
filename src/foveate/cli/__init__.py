"""The command line: `foveate VERB ...`, one thin file for each verb."""

import contextlib
import gc
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any

from foveate.child_processes import end_with_parent
from foveate.errors import OwnError, UserError, one_line, out_of_memory, unknown
from foveate.lazy import without_collection
from foveate.startup import end_at_once_on_interrupt, interrupt_as_usual

VERBS = {
    "demo": "train three small translators on emoji names and see where they look",
    "train": "train a model on your own data, or on text by name",
    "finish": "make a model of a training that was stopped, from its newest checkpoint",
    "run": "use a trained model on your own input",
    "eval": "measure a trained model",
    "compare": "tell whether one run is better than another, or by chance",
    "look": "see where a model looks while it reads an input: one page to keep",
    "effect": "see what an answer needs: without each head, each layer, each token",
    "explore": "see where a model looks, in the browser: type an input, zoom in",
    "serve": "let programs ask a trained model, over HTTP",
    "report": "write one page about a training: curves, what was measured, settings",
    "export": "write a trained model for other libraries: Hugging Face, ONNX, GGUF, CTranslate2",
    "push": "put a trained model on the Hugging Face hub",
    "bench": "compare layers, models and ways to compute, measured here",
    "gallery": "make the pictures of the documentation, and a page of them",
    "size": "count what a model costs to train and to run; the scaling table",
    "models": "list the models that can be trained, with their sizes",
    "data": "list the data and the trained weights that can be had by name",
    "doctor": "show what this machine has, and what makes it slow",
    "completion": "complete commands with the tab key: for bash, zsh, fish",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. A mistake of the user's ends it with one line and exit status 2."""
    own_process = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if own_process:
        end_with_parent()
        sys.stderr = _Forgiving(sys.stderr)
        _print_names_as_they_are()
        gc.freeze()  # what is imported by now stays to the end, and need not be looked through for garbage
    try:
        if arguments[:1] == ["help"]:  # `help VERB` is `VERB --help`, as people know it from git
            arguments = [*arguments[1:], "--help"]
        if not arguments or arguments[0] in ("-h", "--help"):
            print(_overview())
            return
        if arguments[0] == "--version":
            from importlib import metadata  # slow to import

            print(f"foveate {metadata.version('foveate')}")
            return
        verb, *rest = arguments
        if verb not in VERBS:
            raise _unknown_verb(verb, rest)
        with without_collection():
            command = importlib.import_module(f"foveate.cli.{verb}")
        interrupt_as_usual()
        command.main(rest)
        if sys.stdout is not None:  # as it is where standard output is closed
            sys.stdout.flush()
        end_at_once_on_interrupt()  # while libraries end too
    except UserError as error:
        _fail(str(error), own=isinstance(error, OwnError), status=error.status)
    except KeyboardInterrupt:
        if own_process:  # whose threads end within a moment; who presses twice gets no traceback
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        _fail("stopped", status=128 + signal.SIGINT)
    except UnicodeEncodeError as error:
        unwritten = error.object[error.start : error.end]
        if "\ud800" <= unwritten[:1] <= "\udfff":
            _fail(f"{unwritten!r}, which is part of a name, is not valid UTF-8: rename the file or folder")
        _fail(f"{unwritten!r} cannot be written in {error.encoding}: set PYTHONIOENCODING=utf-8")
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        _fail("this takes more memory than there is; smaller sizes, batches or beams take less", own=True)
    except BrokenPipeError:
        # The reader of our output (such as `head`) has had enough.
        _drop_output()
        sys.exit(1)
    except OSError as error:  # such as a full disk under our output
        _drop_output()
        _fail(f"{error.filename}: {error.strerror}" if error.filename else f"{error.strerror or error}")


def _unknown_verb(verb: str, rest: Sequence[str]) -> UserError:
    """The error for a verb that does not exist: the name of a task stands behind a verb."""
    from foveate.tasks import TASKS

    if verb not in TASKS:
        return unknown("command", verb, VERBS)
    given = " ".join(map(shlex.quote, rest)) or "..."
    if not any(os.path.isfile(os.path.join(word, "config.json")) for word in rest):
        given = f"RUN {given}"
    return UserError(
        f"{verb} is a task: foveate run {given} uses a model of it, foveate train {verb} --data ... trains one, "
        f"foveate models {verb} lists presets"
    )


class _Forgiving:
    """Standard error that is lost where it cannot be written, such as on a full disk: no reason to end a training."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, AttributeError, ValueError):  # a closed standard error is None
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, AttributeError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _print_names_as_they_are() -> None:
    """Names of files that are not UTF-8 are printed as the bytes that they are, as `ls` does in a pipe."""
    if getattr(sys.stdout, "errors", None) == "strict":
        sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]


def _drop_output() -> None:
    """Nothing is left that Python would write, and fail to, when it ends."""
    with contextlib.suppress(OSError, AttributeError):  # a closed standard output is None
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, own: bool = False, status: int = 2) -> None:
    """End with one line; each of several processes reports its `own` trouble."""
    from foveate.training.parallel import reports_errors  # takes time, which what goes well does not need

    if reports_errors(own):
        print(f"foveate: {one_line(message)}", file=sys.stderr)  # also of a name with line ends
    end_at_once_on_interrupt()  # while libraries end too
    sys.exit(status)


def _overview() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:{width}}  {what}" for verb, what in VERBS.items())
    return f"usage: foveate VERB ...\n\n{verbs}\n\n`foveate VERB --help` explains the options of a verb."
