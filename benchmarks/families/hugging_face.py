"""The families of transformers: a small model of each, looked at and compared with its own eager weights."""

import copy
import importlib.util
import inspect
import re
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from families.inputs import attempts
from families.outcome import Outcome
from families.reference import weights_of
from families.small import Small
from families.trial import alike, can_be_seen, decided, run, told, tried

LADDER = ((2, False), (2, True), (12, False), (12, True), (24, False))
"""This many layers, and whether widths stay as they are: tried in turn until a model is built that attends."""

LARGEST = 400_000_000
"""Parameters of a model that is small enough."""


def names() -> list[str]:
    return sorted(CONFIG_MAPPING.keys())


def examine(family: str) -> Outcome:
    """Build the family's model, look at it by its default implementation and by the eager one, compare."""
    outcome, reasons = Outcome(family), []
    for layers, wide in LADDER:
        try:
            config, model_class = _chosen(family, Small(layers, wide))
            model = built(model_class, config)
            inputs, output = _first_that_runs(model)
        except Exception as error:  # anything at all may go wrong in a model whose sizes are not what it expects
            reasons.append(told(error))
            continue
        eager = built(model_class, config, "eager")
        run(eager, inputs)  # some models replace modules of theirs in their first run
        reference = weights_of(eager, lambda eager=eager, inputs=inputs: run(eager, inputs))
        if no_numbers := _no_numbers(reference):  # of its eager implementation: is the default's own better?
            reference = weights_of(model, lambda model=model, inputs=inputs: run(model, inputs))
        if _no_numbers(reference):
            reasons.append("its own weights are no numbers")
            continue
        outcome = Outcome(family, model=model_class.__name__, inputs=", ".join(inputs))
        outcome.implementation = getattr(model.config, "_attn_implementation", None) or "eager"
        advised, eager_output = Advised(model_class, config, inputs), run(eager, inputs)
        if outcome.implementation != "eager" and reference and not no_numbers:
            tried(outcome, "eager", eager, inputs, reference, eager_output, advised)
        if not alike(output, eager_output):
            outcome.reason += " its eager implementation gives another output; compared with its default's own"
            reference = weights_of(model, lambda model=model, inputs=inputs: run(model, inputs))
        tried(outcome, "default", model, inputs, reference, output, advised)
        if reference or outcome.verdict != "no attention":
            return outcome
    if not outcome.verdict:
        outcome.verdict, outcome.reason = "not run", " | ".join(dict.fromkeys(reasons))
    return outcome


def _no_numbers(reference: list[Any]) -> bool:
    return any(softmax.weights.isnan().all() for softmax in reference)


class Advised:
    """Whether what an error advises is true of a model."""

    def __init__(self, model_class: type, config: Any, inputs: dict[str, Tensor]) -> None:
        self.model_class, self.config, self.inputs = model_class, config, inputs

    def __call__(self, message: str) -> bool:
        switch = re.search(r"attn_implementation='(\w+)'", message)
        if switch:
            model = built(self.model_class, self.config, switch[1])
            return can_be_seen(model, self.inputs)
        if "output_attentions=True" in message:
            model = built(self.model_class, self.config, "eager")
            try:
                run(model, self.inputs)  # as it had been when it was looked at: some change with their first run
                output = run(model, {**self.inputs, "output_attentions": True})
            except TypeError:
                return False
            return _tells(output)
        return True


def _tells(output: Any) -> bool:
    """Whether an output, or one within it, holds attention weights."""
    if not isinstance(output, dict):
        return False
    return any(("attentions" in name and bool(value)) or _tells(value) for name, value in output.items())


def _chosen(family: str, small: Small) -> tuple[Any, type]:
    """A small config and the model class of a family. Where no model of its own can be called, it is that of the whole
    that it is a part of, or else that of its first part."""
    kind = CONFIG_MAPPING[family]
    wholes = [(name, CONFIG_MAPPING[name]) for name in names() if kind in CONFIG_MAPPING[name].sub_configs.values()]
    parts = [(getattr(part, "model_type", ""), part) for part in kind.sub_configs.values()]
    several = ((name, one, _models(name, one)) for name, one in ((family, kind), *wholes, *parts))
    family, kind, classes = next((one for one in several if one[2]), (family, kind, []))
    if not classes:
        raise LookupError("there is no model of this config")
    named = MODEL_MAPPING_NAMES.get(family, ())
    named = (named,) if isinstance(named, str) else named

    def rank(part: type) -> tuple[bool, bool, bool]:
        name = part.__name__
        return name not in named, not name.endswith("Model"), not re.search("ForConditional|ForCausal", name)

    return small.config(kind), min(classes, key=rank)


OPENS = ("MODEL", "MODEL_FOR_CAUSAL_LM", "MODEL_FOR_IMAGE_TEXT_TO_TEXT", "MODEL_FOR_MULTIMODAL_LM")
"""The tables by which transformers opens a family with the model of another."""


def _models(family: str, kind: type) -> list[type]:
    """The model classes of a config class; those of another family, where transformers opens it with them."""
    place = kind.__module__.replace(".configuration_", ".modeling_")
    own = _own_models(importlib.import_module(place), kind) if importlib.util.find_spec(place) else []
    if own:
        return own
    tables = (getattr(modeling_auto, f"{name}_MAPPING_NAMES") for name in OPENS)
    named = next((table[family] for table in tables if family in table), ())
    opened = [getattr(transformers, name) for name in ((named,) if isinstance(named, str) else named)]
    return [part for part in opened if _can_be_called(part)]


def _can_be_called(model_class: type) -> bool:
    """Whether a model has a forward pass: some only generate."""
    return model_class.forward is not nn.Module.forward


def _own_models(module: Any, kind: type) -> list[type]:
    """The model classes of a module."""
    return [
        part
        for _, part in inspect.getmembers(module, inspect.isclass)
        if issubclass(part, PreTrainedModel)
        and part.__module__ == module.__name__
        and part.config_class is kind
        and _can_be_called(part)
        and not part.__name__.endswith("PreTrainedModel")
    ]


def built(model_class: type, config: Any, implementation: str | None = None) -> nn.Module:
    """A model of this config, by its default implementation or a named one."""
    chosen = {} if implementation is None else {"attn_implementation": implementation}
    with torch.device("meta"):
        on_paper = model_class._from_config(copy.deepcopy(config), **chosen)
    count = sum(parameter.numel() for parameter in on_paper.parameters())
    if count > LARGEST:
        raise LookupError(f"its smallest config still has {count:,} parameters")
    torch.manual_seed(0)
    return decided(model_class._from_config(copy.deepcopy(config), **chosen).float())


def _first_that_runs(model: nn.Module) -> tuple[dict[str, Tensor], Any]:
    """Inputs that the model takes, and what it makes of them."""
    failure: Exception | None = None
    torch.manual_seed(2)
    for inputs in attempts(model):
        try:
            return inputs, run(model, inputs)
        except Exception as error:
            failure = failure or error
    parameters = ", ".join(inspect.signature(model.forward).parameters)
    raise failure or LookupError(f"inputs of other names are needed: {parameters}")
