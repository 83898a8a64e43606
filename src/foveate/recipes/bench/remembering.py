"""Measurements that take long are made once: an interrupted comparison goes on where it was."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foveate import bundle
from foveate.contracts import UserError


def remembered(path: Path, of: dict[str, Any], measure: Callable[[], Any]) -> Any:
    """What `measure` gives, which JSON can hold: from `path` if it is there already, else it is written there.

    `of` says what was measured, in JSON values. Raises UserError if the file is of something else, or damaged.
    """
    if path.is_file():
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            before, measured = found["of"], found["measured"]
        except (ValueError, TypeError, KeyError):
            raise UserError(f"{path} is damaged; remove it, and it is measured again") from None
        if before != of:
            other = [name for name in {**before, **of} if before.get(name) != of.get(name)]
            raise UserError(
                f"{path.parent} was measured with another {other[0]}, {before.get(other[0])!r} and not "
                f"{of.get(other[0])!r}; remove it or choose another --out"
            )
        return measured
    measured = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    with bundle.written(path) as temporary:
        temporary.write_text(json.dumps({"of": of, "measured": measured}, indent=1), encoding="utf-8")
    return measured
