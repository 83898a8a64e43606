"""XML files, read within the bounds of `foveate.limits`."""

import os
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from foveate import limits
from foveate.errors import UserError, one_line


class _Bounded(TreeBuilder):
    """Builds a tree of a bounded depth, of a document that declares no entities, which could grow without bounds."""

    depth = 0

    def start(self, tag: str, attributes: dict[str, str], /) -> Element:
        self.depth += 1
        if self.depth > limits.DEPTH:
            raise ValueError(f"its elements are nested more than {limits.DEPTH} deep")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> Element:
        self.depth -= 1
        return super().end(tag)

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        raise ValueError(f"it has a document type ({name}), which is not read")


def read_xml(path: Path, what: str, most: int = limits.FILE) -> Element:
    """The root of an XML file of at most `most` bytes. Raises UserError for a missing or damaged file, one that is
    nested too deeply and one with a document type; `what` says what it should be."""
    limits.check_file(path, most)
    if not os.path.exists(path):
        raise UserError(f"there is no {what} {path}")
    parser = XMLParser(target=_Bounded())
    try:
        parser.feed(path.read_bytes())
        return parser.close()
    except OSError as error:
        raise UserError(f"cannot read the {what} {path}: {error.strerror}") from None
    except (ParseError, ValueError, LookupError) as error:  # LookupError for an encoding that Python does not know
        raise UserError(f"{path} is not a {what}: {one_line(error)[:200]}") from None
