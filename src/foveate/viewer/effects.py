"""What heads, layers and places of an input do to a model's answer, to be shown: as a page, a picture and a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foveate.contracts import Picture
from foveate.errors import one_line
from foveate.viewer.document import Document, Effect, EffectPanel
from foveate.viewer.protocol import LookResult
from foveate.viewer.sides import Audio, Image, Side

KINDS = ("heads", "layers", "places")
"""What can be taken out."""


@dataclass
class EffectResult:
    """A look at an input, and what the answer needs."""

    look: LookResult
    panel: EffectPanel
    names: Sequence[str] = ()
    """Of the places of the input."""

    def document(self) -> Document:
        """The page: effects, and the weights beside them."""
        document = self.look.document()
        document.effects = self.panel
        return document

    def largest(self, kind: str, count: int) -> list[tuple[str, Effect]]:
        """The largest effects of "heads", "layers" or "places", each with its name."""
        found = sorted(self.all(kind), key=lambda one: -abs(one[1].change))
        return found[:count]

    def all(self, kind: str) -> list[tuple[str, Effect]]:
        """All effects of a kind, in the order of the model or the input."""
        if kind == "places":
            return [*zip(self.names, self.panel.keys, strict=True)]
        if kind == "layers":
            return [*self.panel.layers.items()]
        heads = self.panel.heads.items()
        return [(f"{site} head {number}", one) for site, own in heads for number, one in enumerate(own)]

    def picture(self) -> Picture:
        """The effects of places and heads."""
        from foveate.viewer.effect_figure import draw  # imports matplotlib, which takes a while

        return draw(self.panel, self.names)

    def json_values(self) -> dict[str, Any]:
        """Everything that was measured."""
        panel = self.panel
        heads = [
            {"site": site, "head": number, **_values(one)}
            for site, own in panel.heads.items()
            for number, one in enumerate(own)
        ]
        return {
            "input": self.look.title,
            "answer": panel.answer,
            "score": panel.score_name,
            "value": panel.value,
            "heads": heads,
            "layers": [{"site": site, **_values(one)} for site, one in panel.layers.items()],
            "places": [
                {"place": place, "name": one_line(name), **_values(one)}
                for place, (name, one) in enumerate(zip(self.names, panel.keys, strict=True))
            ],
        }


def place_names(side: Side) -> list[str]:
    """What to call each place of a side, as the page does."""
    picture, before = side.picture, len(side.labels)
    names = [*side.labels]
    for place in range(side.count - before):
        if isinstance(picture, Image):
            down, right = divmod(place, picture.width)
            names.append(f"row {down + 1}, column {right + 1}")
        elif isinstance(picture, Audio):
            names.append(f"{(place + 0.5) * picture.seconds / (side.count - before):.2f} s")
        else:
            names.append(str(before + place))
    return names


def _values(effect: Effect) -> dict[str, Any]:
    return {"effect": effect.change, "exact": effect.exact}
