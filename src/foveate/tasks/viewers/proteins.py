"""The viewer of transformers' protein language models: residues are tokens, and heads tell which of them touch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from foveate.errors import UserError
from foveate.forms.inputs import require_text
from foveate.sight import Sight
from foveate.sight.contacts import ContactSite, contact_map
from foveate.tasks.viewers.texts import TextViewer
from foveate.viewer.protocol import Input, LookResult, Opening

CONTACTS = "contacts"
"""The map of the residues that touch, among the sites of the attention."""

ABOUT = (
    f"{CONTACTS}: how likely each two residues touch, by the folder's logistic regression of all heads "
    "(Rao et al. 2021). Rows do not sum to 1."
)


class ProteinViewer(TextViewer):
    """A model that reads the letters of a protein, with weights that tell contacts from its attention."""

    def look(
        self, given: Input, max_length: int, sites: Sequence[str] | None = None, measure: str = "weights"
    ) -> LookResult:
        """Contacts are told by weights: looks of other measures have none."""
        found = super().look(given, max_length, sites, measure)
        if sites is not None or measure != "weights":
            return found
        _, labels = self.read(require_text(given, self.name), max_length)
        head = contact_head(self.model)
        stack = [site for site in found.sight if site.shape[2] == site.shape[3] == len(labels)]
        inside = range(1, len(labels) - 1)
        if not inside:
            raise UserError("the protein has no residues")
        weights = head.regression.weight.detach()[0].float().cpu()
        bias = 0.0 if head.regression.bias is None else float(head.regression.bias.detach())
        contacts = ContactSite(CONTACTS, contact_map(stack, weights, bias, inside))
        return replace(
            found,
            sight=Sight({CONTACTS: contacts, **{site.name: site for site in found.sight}}, found.sight.notes),
            tokens={CONTACTS: [labels[place] for place in inside], **found.tokens},
            notes=[*found.notes, ABOUT],
            opening=Opening(CONTACTS, 0),
        )


def contact_head(model: nn.Module) -> Any:
    """The part of a model that tells contacts from its attention; None where it has none."""
    found = (part for name, part in model.named_modules() if name.rpartition(".")[2] == "contact_head")
    return next((part for part in found if isinstance(getattr(part, "regression", None), nn.Linear)), None)
