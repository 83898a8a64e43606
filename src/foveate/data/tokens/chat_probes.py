"""Runs the chat template of a folder, which is a program in Jinja's language, on a few chats.

It runs in Jinja's sandbox, in a process of its own, which has little memory and time.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from foveate.child_processes import child_environment
from foveate.errors import UserError
from foveate.files import parse_json

Chat = tuple[Sequence[Mapping[str, str]], bool]
"""Messages, and whether the assistant is to begin after them."""

MOST_TEMPLATE, MOST_WRITTEN = 2**18, 2**20
"""Characters of a template and of what it writes, at most."""

SECONDS = 10
"""How long it may take, at most."""

MEMORY = 2**30
"""Bytes that it may use, where the system can limit them."""

PROGRAM = f"""
import ast, json, re, sys
import jinja2.ext, jinja2.sandbox
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
    resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
except (ImportError, ValueError, OSError):
    pass

def refuse(message):
    raise jinja2.exceptions.TemplateError(message)

asked = ast.literal_eval(sys.stdin.read())
environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False)
environment.globals["raise_exception"] = refuse
text = re.sub(r"({{%-?\\s*)generation(\\s*-?%}})", r"\\1if true\\2", asked["template"])
text = re.sub(r"({{%-?\\s*)endgeneration(\\s*-?%}})", r"\\1endif\\2", text)
template, found = environment.from_string(text), []
for messages, ask in asked["chats"]:
    try:
        found.append(template.render(messages=messages, add_generation_prompt=ask, tools=None, **asked["names"]))
    except jinja2.exceptions.TemplateError:
        found.append(None)
json.dump(found, sys.stdout)
"""
"""As transformers sets Jinja up. A chat that the template refuses is null."""


def write_chats(template: str, names: Mapping[str, str], chats: Sequence[Chat]) -> list[str | None]:
    """Each chat as a template writes it; None for one that it refuses.

    Raises UserError for a program that fails, takes too long or is too large.
    """
    if len(template) > MOST_TEMPLATE:
        raise UserError(f"it has {len(template):,} characters; the limit is {MOST_TEMPLATE:,}")
    return [*_written(repr({"template": template, "names": dict(names), "chats": list(chats)}))]


@lru_cache
def _written(asked: str) -> tuple[str | None, ...]:
    try:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=asked,
            capture_output=True,
            timeout=SECONDS,
            encoding="utf-8",
            env=child_environment(),
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"it takes more than {SECONDS} seconds") from None
    if ended.returncode:
        reason = (ended.stderr.strip().splitlines() or ["it takes too much time or memory"])[-1]
        raise UserError(f"its program fails: {reason[:200]}")
    if len(ended.stdout) > MOST_WRITTEN:
        raise UserError(f"it writes more than {MOST_WRITTEN:,} characters")
    found: list[Any] = parse_json(ended.stdout, "what it writes")
    return tuple(found)
