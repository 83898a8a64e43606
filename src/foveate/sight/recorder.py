"""Records what a model attends to while it runs, and checks that each recorded call made the output."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from foveate.attention import Attended
from foveate.attention.call import Call
from foveate.sight.call_adapter import has_values
from foveate.sight.given_weights import MadeProduct, with_given_weights
from foveate.sight.norms import ProjectionSearch
from foveate.sight.output_check import OutputCheck, check_output, check_product, check_sample, some_queries
from foveate.sight.query_positions import first_query_position
from foveate.sight.site_index import SiteIndex
from foveate.sight.steps import Steps, may_have_steps
from foveate.sight.untraced import Place
from foveate.sight.watcher import MakeCall, Running, Watcher, kernel_of, opened


class Recorder(Watcher):
    """The running modules, and the calls recorded so far."""

    hook_id = -1

    def __init__(
        self,
        sites: Sequence[str] | None = None,
        keep: Sequence[str] | None = None,
        own: bool = False,
        projections: ProjectionSearch | None = None,
        gradients: bool = False,
    ) -> None:
        """With `projections`, values are measured; with `gradients`, outputs and values are kept."""
        super().__init__(sites, own)
        self._projections, self.keeps_graph = projections, gradients
        self.index = SiteIndex(with_keys=keep is None)
        self._keep = keep
        self._steps: dict[str, tuple[Steps, Place | None]] = {}
        """By module: the call to which its next one may be a further step, and where to note that it does not fit."""

    def begin_run(self) -> None:
        self.index.begin_run()

    def end_run(self) -> None:
        for name in [*self._steps]:
            self._close_steps(name)

    def change(self, make: MakeCall, place: Running | None = None) -> Attended | None:
        """For gradients the same call by a kernel of `attend`: then its output is part of the model's graph whatever
        the model does with it. A product of weights that the model made itself is, as it is."""
        module, _ = self._running[-1]
        asked = self.keeps_graph and place is None and self.is_selected(module)
        if not asked or not has_values((call := make()).queries):
            return None
        with self.inside_call():
            attended = kernel_of(call).attend(call)
        self.made = call
        self.record(call, attended)
        return attended

    def record(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None = None) -> None:
        """Record a call of the running module.

        Its output must match the call, after `finish` if it is given; otherwise the module is added to the untraced
        ones. Queries and keys are copied, since a cache may overwrite them, and since a slice of a joint projection
        would keep all of it alive. That costs little compared with attention.
        """
        if not has_values(call.queries):
            self.untraced.note_opaque()
            return
        self.untraced.note_recorded()
        if (changer := opened.get("change")) is not None:
            call = changer.made or call
        module, running = self._running[-1]
        if not self.is_selected(module):
            self._unselected.add(module)
            return
        if finish is None and module in self._steps and self._steps[module][0].take(call, attended):
            return
        self._close_steps(module)
        with self._measuring(call.queries.device.type):
            self._record((module, running), call, attended, lambda kept: self._check(kept, attended, finish), finish)

    def record_weights(self, place: Running, product: MadeProduct) -> None:
        """Record weights that a module made itself, multiplied with what it reads.

        They are those before dropout, if it dropped any. They are not copied; a later write to them is detected.
        """
        module, _ = place
        self.untraced.note_recorded(module)
        if not self.is_selected(module):
            self._unselected.add(module)
            return
        self._close_steps(module)
        with self._measuring(product.weights.device.type):
            changer = opened.get("change")
            call = product.points if changer is None or changer.made is None else changer.made
            if call is not None:
                attended = Attended(product.output)
                self._record(place, call, attended, lambda kept: self._check(kept, attended, None), made=True)
                return
            weights = product.weights if product.before_dropout is None else product.before_dropout
            queries = range(weights.shape[-2]) if "output_error" in (self._keep or ()) else some_queries(product.call)
            attended = Attended(product.output, weights=weights)
            self._record(place, product.call, attended, lambda _: check_product(product, queries), made=True)

    def _record(
        self,
        place: Running,
        call: Call,
        attended: Attended,
        check_kept: Callable[[Call], OutputCheck | None],
        finish: Callable[[Tensor], Tensor] | None = None,
        made: bool = False,
    ) -> None:
        """Record a call if what is kept of it passes the check; later ones may be further steps of it, unless the model
        `made` its weights itself."""
        module, running = place
        if attended.weights is not None:
            call = with_given_weights(call, attended.weights)
        site, recorded = self.index.assign(module, call, self.own and call.projected)
        recorded.position = None if site.calls else first_query_position(call, running)
        of_model = call
        if site.keys is not None:  # check the copies, since they are what will be shown
            call = replace(call, queries=recorded.call.queries, keys=site.keys.read(recorded.span))
        check = check_kept(call)
        if check is not None and not check.passed:
            self.index.discard_if_empty(site)
            self.untraced.note_mismatch()
            return
        recorded.choice = None if attended.choice is None else attended.choice.clone()
        if self._keep is not None:
            site.compute_measures(recorded, call, [name for name in self._keep if name != "output_error"])
        if self._projections is not None:
            self._projections.measure(recorded, of_model, attended.output, finish)
        if self.keeps_graph:
            recorded.output, recorded.values = attended.output, of_model.values.detach()
        site.calls.append(recorded)
        site.errors += [] if check is None or call.dropout else [check.error]
        joins = site.keys is not None and finish is None and not made and not self.keeps_graph
        if joins and may_have_steps(of_model, attended, recorded):
            self._steps[module] = Steps(site, recorded, of_model, self.own), self.untraced.place

    def _check(self, call: Call, attended: Attended, finish: Callable[[Tensor], Tensor] | None) -> OutputCheck | None:
        every = "output_error" in (self._keep or ())
        if self.own and not every:
            return check_sample(call, attended, len(self.index.sites))
        queries = range(call.queries.shape[-2]) if every else some_queries(call)
        return check_output(call, attended, queries, finish=finish)

    def _close_steps(self, module: str) -> None:
        """Check and keep the further steps of a module's last call; note it where they do not fit."""
        if module not in self._steps:
            return
        steps, place = self._steps.pop(module)
        with self._measuring(steps.device):
            check = steps.close()
        if check is not None and not check.passed:
            self.untraced.note_mismatch(place)

    @contextmanager
    def _measuring(self, device: str) -> Iterator[None]:
        """Compute what is not part of the model: nothing of it is recorded, received, or has gradients."""
        autocast = torch.autocast(device, enabled=False)
        unintercepted = torch._C.DisableTorchFunction()  # as what is called here need not be received
        with self.inside_call(), unintercepted, torch.inference_mode(False), torch.no_grad(), autocast:
            yield
