"""The figure that all pictures are drawn in: texts as they are, in any script, with their fonts in the file."""

from io import BytesIO
from typing import Any

import matplotlib
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter

from foveate.viewer.fonts import find_fonts

EMBEDDED: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}
"""TrueType fonts in PDF and PostScript, which can be searched, copied and edited; matplotlib's default cannot."""


class PlainFigure(Figure):
    """A figure of matplotlib that draws the texts of users and models: a `$` begins no formula, and characters that
    the default font lacks come from other fonts.

    The numbers at the ticks of an axis stay matplotlib's own, with the powers of a logarithmic scale.
    """

    def draw(self, renderer: Any) -> None:
        """Settle all texts, then draw, of which the layout is a part."""
        axes = self.findobj(Axis)
        numbers = {text for axis in axes if not _has_names(axis) for text in _tick_texts(axis)}
        texts = [one for one in self.findobj(Text) if one not in numbers]
        families, replacements = find_fonts(text.get_text() for text in texts)
        for text in texts:
            text.set(parse_math=False, fontfamily=families, text=text.get_text().translate(replacements))
        for axis in filter(_has_names, axes):
            locator: Any = axis.get_major_locator()
            name, places = axis.get_major_formatter(), locator.locs
            axis.set_ticklabels([str(name(place, at)).translate(replacements) for at, place in enumerate(places)])
        super().draw(renderer)

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """As matplotlib's, with embedded fonts."""
        with matplotlib.rc_context(EMBEDDED):
            super().savefig(*arguments, **options)

    def _repr_png_(self) -> bytes:
        """The picture in a notebook, also where nothing told matplotlib that it is in one."""
        file = BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def _has_names(axis: Any) -> bool:
    """Whether the labels of the ticks were given, each with its place."""
    return isinstance(axis.get_major_locator(), FixedLocator) and isinstance(axis.get_major_formatter(), FuncFormatter)


def _tick_texts(axis: Any) -> list[Text]:
    """The texts of the ticks that there are, and of the power of ten beside them."""
    ticks = [*axis.majorTicks, *axis.minorTicks]
    return [axis.get_offset_text(), *(text for tick in ticks for text in (tick.label1, tick.label2))]
