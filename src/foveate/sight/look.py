"""Looking at a model of foveate while it runs, and computing afterwards where it looked."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveate.attention import Attended, tapped
from foveate.attention.call import Call
from foveate.attention.selection import weights
from foveate.contracts import UserError, unknown


class Site:
    """A module that attends, with what it attended to in each of its calls.

    A decoder that attends once for each step has one call for each, and its rows are the steps.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[Call] = []

    def weights(
        self, heads: slice | Sequence[int] = slice(None), queries: slice | Sequence[int] = slice(None)
    ) -> Float[Tensor, "B H T S"]:
        """The weights of the chosen heads and queries: the softmax that made the output, before any dropout.

        Calls over one source are rows of one map; keys that a call did not have yet count as not looked at. Raises
        UserError if the calls were not for equally many examples, as in a beam search.
        """
        with torch.no_grad():
            maps = [weights(call.scores()) for call in self.calls]
        maps = [found.reshape(found.shape[0], -1, *found.shape[-2:]) for found in maps]
        if len(batches := sorted({len(found) for found in maps})) > 1:
            raise UserError(
                f"{self.name} was called for {' and for '.join(map(str, batches))} examples, which are no rows of one "
                "map; look at a pass over known targets instead"
            )
        widest = max(found.shape[-1] for found in maps)
        maps = [nn.functional.pad(found, (0, widest - found.shape[-1])) for found in maps]
        return torch.cat(maps, -2)[:, heads][:, :, queries]

    def __repr__(self) -> str:
        return f"Site({self.name!r}, {len(self.calls)} calls)"


class Sight:
    """What was seen: `sight[site]` for each of `sight.sites`."""

    def __init__(self) -> None:
        self._sites: dict[str, Site] = {}

    @property
    def sites(self) -> list[str]:
        """The paths of the modules that attended, in the order of their first calls."""
        return list(self._sites)

    def __getitem__(self, name: str) -> Site:
        if name not in self._sites:
            raise unknown("site", name, self._sites)
        return self._sites[name]

    def add(self, name: str, call: Call) -> None:
        """Note one call at a site. Queries and keys are kept as they are, without a copy and without gradients."""
        kept = replace(call, queries=call.queries.detach(), keys=call.keys.detach(), values=call.values.detach())
        self._sites.setdefault(name, Site(name)).calls.append(kept)


@contextmanager
def look(model: nn.Module) -> Iterator[Sight]:
    """Note what every attention call of `model` looks at while the context is open; compute nothing for it.

    Outputs and gradients are those of a run that is not looked at.
    """
    sight = Sight()
    path: list[str] = []

    def note(call: Call, attended: Attended) -> None:
        if path:  # else it is no call of this model
            sight.add(path[-1], call)

    def leave(*_: object) -> None:  # what a hook returns would replace the module's output
        path.pop()

    with ExitStack() as stack:
        for name, module in model.named_modules():
            entering = module.register_forward_pre_hook(lambda *_, name=name: path.append(name))
            leaving = module.register_forward_hook(leave, always_call=True)
            stack.callback(entering.remove)
            stack.callback(leaving.remove)
        stack.enter_context(tapped(note))
        yield sight
