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
    sides: Sequence[Side] = ()
    """Of each part of the panel's places, the keys that they are among."""

    @property
    def names(self) -> list[str]:
        """What to call each place of the input, of all parts."""
        parts = zip(self.panel.places, map(place_names, self.sides), strict=True)
        return [names[place] for part, names in parts for place in part.places]

    def document(self) -> Document:
        """The page, which opens with the effects: the weights are beside them."""
        document = self.look.document()
        document.effects, document.opening = self.panel, None
        return document

    def largest(self, kind: str, count: int) -> list[tuple[str, Effect]]:
        """The largest effects of "heads", "layers" or "places", each with its name."""
        found = sorted(self.all(kind), key=lambda one: -abs(one[1].change))
        return found[:count]

    def all(self, kind: str) -> list[tuple[str, Effect]]:
        """All effects of a kind, in the order of the model or the input."""
        if kind == "places":
            places = [one for part in self.panel.places for one in part.effects]
            return [*zip(self.names, places, strict=True)]
        if kind == "layers":
            return [*self.panel.layers.items()]
        heads = self.panel.heads.items()
        return [(f"{site} head {number}", one) for site, own in heads for number, one in enumerate(own)]

    def picture(self) -> Picture:
        """The effects of places and heads."""
        from foveate.viewer.effect_figure import draw  # imports matplotlib, which takes a while

        return draw(self.panel, [(place_names(side), side.picture) for side in self.sides])

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
            "places": self._places(),
        }

    def _places(self) -> list[dict[str, Any]]:
        """The effect of each place, with a site whose keys it is among, and its number there."""
        where = [(part.site, place) for part in self.panel.places for place in part.places]
        return [
            {"site": site, "place": place, "name": one_line(name), **_values(one)}
            for (site, place), (name, one) in zip(where, self.all("places"), strict=True)
        ]


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
