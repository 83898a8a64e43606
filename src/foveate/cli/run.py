"""`foveate run RUN "text"`: use a trained model."""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from foveate import tasks
from foveate.cli.folders import check_no_part, parse_with_task
from foveate.cli.input_tables import read_inputs
from foveate.cli.json_answers import answer_as_json, check_answers_file, write_answers
from foveate.cli.piped import groups_as_they_come
from foveate.cli.prompt import typed_lines
from foveate.data.table.formats import format_of
from foveate.data.text.files import read_lines
from foveate.data.tokens.chat import Message
from foveate.errors import UserError, one_line, printable, quoted
from foveate.files import check_place, real_path
from foveate.forms.answers import Answer, Failure, answer_values
from foveate.forms.ranged_pixels import use_pixel_range
from foveate.forms.truncation import use_truncation
from foveate.tasks.skill import Skill
from foveate.viewer.figures import check_extension, save_figure

CHUNK = 1000
"""Lines of standard input that are answered together: the most that an answer waits for."""

ALL = 2**20
"""More labels than any model has."""

Options = TypeVar("Options")


@dataclass
class Run(Generic[Options]):
    """Use a trained model on each argument, or on each line of a file or of standard input. One line of output for
    each.

    A model's task adds options of its own: `foveate run RUN --help` shows them. Without RUN, a translator's are shown.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a trained model: of foveate's or of Hugging Face's; or a name of trained weights: smollm2, minilm,
    whisper-tiny.en; or a model of the hub: hub:ORGANISATION/NAME."""
    options: Annotated[Options, tyro.conf.arg(name="")]
    text: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TEXT ...")] = ()
    """What the model reads: texts, or files of images or sounds. Without any, lines are read from `--file` or standard
    input."""
    file: Path | None = None
    """File of inputs: a line each, or the rows of a .csv, .jsonl or .parquet table, by its header; plain or .gz."""
    columns: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=TITLE ...")] = ()
    """What that table calls our columns, where it has other titles than the one of the training."""
    picture: Path | None = None
    """Also draw where the model looked while it read the first input, into this file (.png, .svg, .pdf; in a .gif
    the words appear one after the other)."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""
    pixel_range: tuple[float, float] | None = None
    """For images: the values of 16-bit and floating-point pixels that become black and white. By default as in the
    training."""
    truncate: bool = False
    """Cut texts that are too long for the model, instead of leaving them without an answer."""
    output: Path | None = None
    """Write the answers to this file instead of printing them: a table (.csv, .tsv) with a column for each number, or a
    JSON object a line (.jsonl)."""
    json: bool = False
    """Print a JSON object for each input: the input, and the answer with its probabilities and numbers."""


def main(arguments: Sequence[str]) -> None:
    asked = parse_with_task(Run, arguments, "run")
    if asked.text and asked.file is not None:
        raise UserError(f"both inputs and the file {asked.file} are given; choose one")
    if asked.columns and (asked.file is None or format_of(asked.file) == "tabs"):
        raise UserError("--columns names the columns of a table: give a .csv, .jsonl or .parquet file by --file")
    if asked.picture is not None:
        check_extension(asked.picture)
        check_place(asked.picture)
    if asked.output is not None:
        check_answers_file(asked.output)
        check_no_part(asked.output, asked.folder, "--output")
        if real_path(asked.output) in [real_path(read) for read in (asked.file, *asked.text) if read is not None]:
            raise UserError(f"{asked.output} is what the model is to read: name another --output")
    task: Any = tasks.load(asked.folder, asked.device)
    use_pixel_range(task, asked.pixel_range)
    use_truncation(task, asked.truncate)
    if not asked.text and asked.file is None and getattr(asked.options, "chat", False) and _interactive():
        _chat(task, asked)
        return
    if asked.text == ("-",) and (hear := _hearer(task)) is not None:
        _hear(hear, asked)
        return
    if asked.output is not None and getattr(asked.options, "top", None) == 1:  # a table has room for all
        asked.options = replace(asked.options, top=ALL)
    rows: list[dict[str, Any]] = []
    try:
        _answer_all(task, asked, rows)
    finally:  # what was answered before a mistake, or before Ctrl-C, is kept
        if asked.output is not None and rows:
            write_answers(asked.output, rows)
            failed = sum("error" in row for row in rows)
            without = f", {failed:,} errors" if failed > 1 else ", 1 error" if failed else ""
            print(f"wrote {one_line(asked.output)}: {len(rows) - failed:,} answers{without}", file=sys.stderr)


def _answer_all(task: Any, asked: Run, rows: list[dict[str, Any]]) -> None:
    """Answer every input: print the answers, or add them to `rows`. Raises UserError in the end if one failed."""
    lines, empty, long, cut, drawn = 0, 0, 0, 0, asked.picture is None
    failure: Failure | None = None
    streams = _streams(task, asked)
    for given in _chunks(task, asked):
        sentences = task.expand(given)
        for sentence, prediction in zip(sentences, _answers(task, sentences, asked, lines), strict=True):
            if isinstance(prediction, Failure):
                if failure is not None:
                    print(one_line(_reason(failure)), file=sys.stderr)
                failure = prediction  # the last one ends the command
            elif asked.picture is not None and not drawn and prediction.line:
                drawn = _draw(task, prediction, asked.picture)
            if asked.output is not None:
                rows.append(answer_values(sentence, prediction))
            elif not streams:
                _print(sentence, prediction, asked)
            empty += not (sentence.strip() or prediction.line or isinstance(prediction, Failure))
            long += isinstance(prediction, Answer) and prediction.long
            cut += isinstance(prediction, Answer) and prediction.cut
        lines += len(sentences)
    if empty:
        print("1 empty line stays empty" if empty == 1 else f"{empty:,} empty lines stay empty", file=sys.stderr)
    if cut:
        print(f"{cut:,} lines were cut to the positions that the model has", file=sys.stderr)
    if long:
        print(f"{long:,} lines are longer than any the model learned from; they may be poor", file=sys.stderr)
    if failure is not None:
        raise UserError(_reason(failure))
    if not drawn:
        raise UserError(f"no picture to draw into {asked.picture}: there was nothing to answer")


def _reason(failure: Failure) -> str:
    """Why an input could not be read, with its name or its beginning."""
    place = printable(failure.given.partition("\t")[0])  # of an image with a question about it
    named = place in failure.reason or printable(quoted(failure.given)) in failure.reason
    return failure.reason if named else f"{failure.given}: {failure.reason}"


def _print(given: str, prediction: Any, asked: Run) -> None:
    print(answer_as_json(given, prediction) if asked.json else prediction.line, flush=True)


def _hearer(task: Any) -> Callable[..., Iterator[Answer]] | None:
    """What answers to the parts of a piped sound; None for a model that hears nothing."""
    return getattr(task, "hear", None)


def _hear(hear: Callable[..., Iterator[Answer]], asked: Run) -> None:
    """Transcribes the sound of standard input, part by part, as it comes."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError("'-' reads a sound from a pipe: arecord -f S16_LE -r 16000 | foveate run RUN -")
    if asked.picture is not None:
        raise UserError("a picture is drawn of a file, not of piped sound")
    for found in hear(sys.stdin.buffer.read, asked.options):
        _print("-", found, asked)


def _answers(task: Any, texts: list[str], asked: Run, before: int) -> Sequence[Answer | Failure]:
    """The answer to each text; `before` is how many came earlier."""
    options: Any = asked.options
    if hasattr(options, "seed"):  # what is drawn for later texts is drawn anew
        options = replace(options, seed=options.seed + before)
    found: Sequence[Answer | Failure] = (
        task.stream(texts, options, _show) if _streams(task, asked) else task.answer(texts, options)
    )
    return found


def _interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _chat(task: Any, asked: Run) -> None:
    """Answers each line that is typed, in the light of all before it."""
    before: list[Message] = []
    for text in typed_lines():
        found = task.chat(text, asked.options, _show, before)
        if isinstance(found, Failure):
            print(one_line(_reason(found)), file=sys.stderr)
            continue
        before += [Message("user", text), Message("assistant", found.text)]


def _streams(task: Any, asked: Run) -> bool:
    """Whether the answer to the only text is shown while it is written."""
    return hasattr(task, "stream") and len(asked.text) == 1 and sys.stdout.isatty() and not (asked.json or asked.output)


def _show(part: str) -> None:
    print(part, end="", flush=True)


def _chunks(task: Any, asked: Run) -> Iterator[list[str]]:
    """The sentences, as many together as can be answered before the first answer is shown."""
    if asked.text:
        sentences: Iterator[str] = iter(asked.text)
        for file in asked.text if task.takes == "text" else ():
            if _is_file(file):
                print(f"'{file}' is read as a text; --file {file} reads the texts in it", file=sys.stderr)
    elif asked.file is None and sys.stdin is None:
        raise UserError("no text: standard input is closed, and neither inputs nor a file are given")
    else:
        sentences = read_inputs(asked.file, task, asked.columns) if asked.file else _piped_lines(asked)
    if asked.text or asked.file is not None:
        return _groups(sentences)
    if sys.stdin.isatty():
        return _groups(typed_lines(), 1)
    if _regular(sys.stdin):
        return _groups(sentences)
    if hasattr(asked.options, "seed"):  # what is drawn must not depend on how fast lines come
        return _groups(sentences, 1)
    return groups_as_they_come(sentences, CHUNK)


def _is_file(text: str) -> bool:
    """Returns whether a text is the path of a file; most are too long to be one, or no path."""
    with contextlib.suppress(OSError, ValueError):
        return Path(text).is_file()
    return False


def _piped_lines(asked: Run) -> Iterator[str]:
    """The lines of standard input. Raises UserError where it is empty, with the reason if an option took the text."""
    try:
        yield from read_lines(sys.stdin.buffer)
    except UserError as error:
        choices = getattr(getattr(asked.options, "prompting", None), "choices", ())
        if not choices:
            raise
        raise UserError(
            f"{error}, and '{choices[-1]}' was read as one of the --choices: give texts before --choices, or in --file"
        ) from None


def _regular(stream: Any) -> bool:
    """Whether a stream is a file, which is there as a whole; one without a descriptor is."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, AttributeError):
        return True


def _groups(sentences: Iterator[str], size: int = CHUNK) -> Iterator[list[str]]:
    chunk: list[str] = []
    try:
        for sentence in sentences:
            chunk.append(sentence)
            if len(chunk) == size:
                yield chunk
                chunk = []
    except UserError:  # told when those before it are answered
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def _draw(task: Skill, answer: Answer, path: Path) -> bool:
    """Draws where the model looked; False where it wrote nothing. Raises UserError for a model that does not attend."""
    figure = task.picture(answer)
    if figure is None:
        if not task.attends():
            raise UserError(f"no picture to draw into {path}: this model has no attention")
        return False
    save_figure(figure, path)
    print(f"drew {one_line(path)}", file=sys.stderr)
    return True
