"""Objects that a detector of transformers found: where its queries looked."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from foveate.forms.boxes import Boxes, BoxesAnswer
from foveate.forms.form import MapRow
from foveate.forms.naming import DecoderNames, Naming, encoder_decoder_names, single_input_names
from foveate.viewer.marks import Mark
from foveate.viewer.sides import SidePair


@dataclass
class ForeignBoxes(Boxes):
    """Objects found by queries that attend to the image: in layers of their own, or beside the places of the image,
    behind which they stand (YOLOS)."""

    def side_names(self, sight: Any, along: Naming, answer: BoxesAnswer) -> dict[str, SidePair]:
        own = self.axis(answer)
        if not any(sight[site].shape[2] == answer.queries for site in sight.sites):
            return single_input_names(sight, lambda count: None)  # the queries stand behind the places
        decoder = next((site.rpartition(".layers.")[0] for site in _crosses(sight, answer)), own.path)
        return encoder_decoder_names(sight, along, DecoderNames(own.read, own.written, decoder, own.count))

    def rows(self, sight: Any, model: nn.Module, answer: BoxesAnswer, before: int) -> list[MapRow]:
        """Where the query of each object looked in the last layer; the surest query where nothing is shown."""
        crosses, count = _crosses(sight, answer), answer.queries
        site = sight[(crosses or sight.sites)[-1]]
        weights = site.weights()[0].float().mean(0).cpu()
        if not crosses:
            if weights.shape[0] != weights.shape[1] or len(weights) <= count:
                return []
            weights = weights[-count:, :-count]
        shown = answer.objects or answer.every[:1]
        return [MapRow(one.name, weights[one.query], mark=Mark(one.name, one.box)) for one in shown]


def _crosses(sight: Any, answer: BoxesAnswer) -> list[str]:
    """The sites where queries look at the places of the image."""
    shapes = {site: sight[site].shape[2:] for site in sight.sites}
    return [site for site, (queries, keys) in shapes.items() if queries == answer.queries != keys]
