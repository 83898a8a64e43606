"""The objects that a detector finds in images, and how they are shown."""

from dataclasses import dataclass, field

from foveate.errors import UserError, one_line


@dataclass
class Detecting:
    """Which objects are shown."""

    threshold: float = 0.5
    """The least score of an object that is shown. Measures count all."""

    def check(self) -> None:
        """Raise UserError for a value that cannot be."""
        if not 0 <= self.threshold <= 1:
            raise UserError(f"threshold is {self.threshold}, but must be from 0 to 1")


@dataclass
class FoundObject:
    """An object in an image."""

    label: str
    score: float
    """How sure the model is, 0 to 1."""
    box: tuple[float, ...]
    """Left, top, right and bottom in pixels."""
    query: int
    """The number of the query that found it."""


@dataclass
class FoundObjects:
    """The objects of an image, the surest one first."""

    place: str
    """The file of the image."""
    size: tuple[int, int]
    """Width and height of the image; (0, 0) for a file that could not be read."""
    objects: list[FoundObject] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The file and, after tabs, label, score and box of each object."""
        if self.size == (0, 0):
            return ""
        parts = [f"{one.label} {one.score:.2f} {' '.join(f'{side:.0f}' for side in one.box)}" for one in self.objects]
        return one_line("\t".join([self.place, *(parts or ["nothing"])]))
