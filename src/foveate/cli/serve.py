"""`foveate serve RUN`: a model that answers over HTTP."""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

import tyro

from foveate import tasks
from foveate.cli.folders import parse_with_task
from foveate.errors import UserError, at_least
from foveate.forms.ranged_pixels import use_pixel_range
from foveate.forms.truncation import use_truncation
from foveate.serving import Service, ServiceLimits, make_application
from foveate.viewer.server.serving import Address, listen, make_server, url_of

Options = TypeVar("Options")

GRACE = 30
"""Seconds that requests have to end when the service is asked to."""


@dataclass
class Serve(Generic[Options]):
    """Serve a trained model over HTTP: POST /answer, POST /look; GET /health, /metrics, /openapi.json.

    Inputs of many clients are answered together. Pages of other sites are refused. Ctrl-C, or SIGTERM, ends it once
    the requests that it has are answered. A model's task adds options of its own, which requests may change:
    `foveate serve RUN --help` shows them.
    """

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a trained model: of foveate's or of Hugging Face's; or a name of trained weights: smollm2, minilm,
    whisper-tiny.en; or a model of the hub: hub:ORGANISATION/NAME."""
    options: Annotated[Options, tyro.conf.arg(name="")]
    host: str = "127.0.0.1"
    """Address to listen at. Any other than this machine's own lets all who reach it use the model."""
    port: int = 8000
    """Port to listen at; 0 takes a free one."""
    allow_host: tuple[str, ...] = ()
    """Further names by which clients may call this machine, such as that of a proxy before it."""
    batch: int = 64
    """How many inputs are answered together, at most."""
    patience: float = 2.0
    """Milliseconds that an input may wait for others."""
    give_up: float = 60.0
    """Seconds after which a request is given up."""
    most_waiting: int = 1024
    """How many requests may wait for the model."""
    most_inputs: int = 256
    """How many inputs a request may have."""
    most_megabytes: float = 16.0
    """The largest request."""
    pixel_range: tuple[float, float] | None = None
    """For images: the values of 16-bit and floating-point pixels that become black and white. By default as in the
    training."""
    truncate: bool = False
    """Cut texts that are too long for the model, instead of leaving them without an answer."""
    device: str = "cpu"
    """Where to compute: "cpu", "auto" for a GPU of this machine if there is one, or PyTorch's name of a device."""


def main(arguments: Sequence[str]) -> None:
    asked = parse_with_task(Serve, arguments, "serve", "run")
    for name in ("batch", "most_waiting", "most_inputs"):
        at_least(1, name, getattr(asked, name))
    if not 0 <= asked.patience < 1e6 or not 0 < asked.give_up < 1e6 or not 0 < asked.most_megabytes < 1e5:
        raise UserError("patience, give_up and most_megabytes must be positive numbers")
    asked.options.check()
    skill = tasks.load(asked.folder, asked.device)
    use_pixel_range(skill, asked.pixel_range)
    use_truncation(skill, asked.truncate)
    limits = ServiceLimits(
        batch=asked.batch,
        wait=asked.patience / 1000,
        inputs=asked.most_inputs,
        bytes=int(asked.most_megabytes * 2**20),
        waiting=asked.most_waiting,
        seconds=asked.give_up,
    )
    application = make_application(Service(skill, asked.options, limits))
    with listen(Address(asked.host, asked.port)) as listener:
        port = listener.getsockname()[1]
        print(f"{skill.name}\n{url_of(asked.host, port)} (Ctrl-C ends it)", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: None)  # the server ends by it, and then sends it once more
        with suppress(KeyboardInterrupt):
            make_server(application, asked.host, port, asked.allow_host, GRACE).run([listener])
    os._exit(0)  # Python would wait for a model that still runs
