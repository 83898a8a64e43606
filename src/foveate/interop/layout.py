"""What foveate knows of a family's public layout: its `config.json` and the names of its tensors."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from torch import Tensor

from foveate.errors import MOST, UserError, show_value
from foveate.interop.key_map import KeyMap
from foveate.nn import StackConfig


class UnlikeOurs(UserError):
    """A `config.json` that makes sense, of a type of model that we have, with a part that our models do not have.

    Where transformers is installed, such a folder runs through it (`interop/through_transformers.py`).
    """


@dataclass(frozen=True)
class Layout:
    """The layout in which transformers writes a family of ours."""

    family: str
    """Its name in `foveate.models.FAMILIES`."""
    architectures: Mapping[str, str]
    """The classes of transformers that our models are equal to, each with what its head predicts: "words", a label of
    the "text" or of each of its "tokens", or "none"."""
    key_map: Callable[[Any], KeyMap]
    """The table of tensors for a config of ours."""
    read_config: Callable[[Mapping[str, Any], str], Any]
    """Our config from what `config.json` holds and where it is; UserError for what our models do not have."""
    write_config: Callable[[Any], dict[str, Any]]
    """The inverse, with "model_type" and "architectures"."""
    aliases: Callable[[Any], Mapping[str, str]] = lambda config: {}
    """Other public names of modules and of their parameters, such as those of older files, each with the one that the
    table has."""
    heads: tuple[str, ...] = ()
    """Patterns of public tensors that are not of the body, whichever head a file has."""
    holds: Callable[[Any], bool] = lambda config: True
    """Whether it is the layout of a model with this config, where several are of one family."""
    settle: Callable[[Any, Mapping[str, Tensor]], Mapping[str, Tensor]] = lambda config, given: given
    """Sets the fields of a config that the tensors of its file decide, such as which of them are tied. Returns the
    tensors as the table has them."""
    reads: Callable[[Mapping[str, Any]], bool] = lambda values: True
    """Whether we have all parts that a `config.json` names, where it names several."""
    image_processor: str = ""
    """The class of transformers that reads the images of such a model; empty for one that reads none."""
    feature_extractor: str = ""
    """The class of transformers that reads the sounds of such a model; empty for one that reads none."""


NOT_PUBLIC = (
    *("split", "head_widths", "value_width", "head_gate", "weights", "mixing", "query_temperature"),
    *("head_score", "score_limit"),
)
"""Fields of configs that no public layout has."""

OF_STACKS = ("key_value_heads", "query_key_norm", "score_scale", "score_cap")
"""Fields that public layouts have of text models alone: their tables say which."""


def require_public(config: Any, public: str) -> None:
    """UserError, in one line, for a config with attention that no other library has."""
    refused = NOT_PUBLIC if isinstance(config, StackConfig) else (*NOT_PUBLIC, *OF_STACKS)
    usual = {part.name: part.default for part in fields(config) if part.name in refused}
    for name, plain in usual.items():
        if (own := getattr(config, name)) != plain:
            raise UserError(f"this model has the {name} {own}, but {public} {plain}: it has no public layout")


def require_defaults(config: Any, plain: Any, names: Iterable[str], public: str) -> None:
    """UserError, in one line, for a config whose fields of these `names` are other than those of a `plain` one.

    `public` is what the library calls the model, such as "transformers' BERT".
    """
    for name in names:
        own, usual = getattr(config, name), getattr(plain, name)
        if own != usual:
            kind = public.rpartition(" ")[2]
            raise UserError(f"this {kind} has the {name} {own}, but {public} {usual}: it has no public layout")


NOT_WRITTEN = (
    *("vocabulary", "classes", "head", "pooling", "label_bias"),
    *("dropout", "activation_dropout", "depth_dropout", "condition_dropout"),
)
"""Fields of a language model's config that every public layout says by itself, or needs not."""


def require_plain(config: Any, usual: Any, written: Iterable[str], public: str) -> None:
    """UserError for a language model with something that files cannot say: a field other than those `written` whose
    value is not the `usual` one. Its head is for `causal_class`."""
    known = {*written, *NOT_WRITTEN}
    require_defaults(config, usual, (part.name for part in fields(config) if part.name not in known), public)


def causal_class(config: Any, architectures: Mapping[str, str]) -> str:
    """The class, of those of a language model, that predicts what a model with this config does.

    UserError where there is none, and where transformers makes labels in another way.
    """
    found = next((name for name, head in architectures.items() if head == config.head), None)
    if found is None:
        raise UserError(f"transformers has {', '.join(architectures)}, but none for labels of {config.head}")
    if config.head == "text" and config.pooling != "last":
        raise UserError(f"{found} labels a text by its last token: train with --architecture.pooling last")
    if config.head != "words" and config.label_bias != (bias := config.head == "tokens"):
        has, flag = ("a", "label-bias") if bias else ("no", "no-label-bias")
        raise UserError(f"{found} has {has} bias of labels: train with --architecture.{flag}")
    return found


def label_names(values: Mapping[str, Any], where: str) -> list[str]:
    """The names of the labels that a `config.json` has, by their numbers. UserError where these are not 0, 1, 2, ..."""
    count = ConfigReader(values, where).get("num_labels", 2)
    named = values.get("id2label") or {str(number): f"LABEL_{number}" for number in range(count)}
    if not isinstance(named, Mapping) or {*map(str, named)} != {*map(str, range(len(named)))}:
        raise UserError(f"{where} has the id2label {show_value(named)}, but labels are numbered 0, 1, 2, ...")
    found = [str(named[number]) for number in sorted(named, key=int)]
    name, count = Counter(found).most_common(1)[0]
    if count > 1:
        raise UserError(f"{where} has the label '{name}' {count} times")
    return found


Scores = Literal["softmax", "sigmoid", "number"]
"""What the logits of a head are: of labels that exclude each other, of labels that hold or not, each by itself, or
numbers that are the answer."""

PROBLEMS = (None, "single_label_classification", "multi_label_classification", "regression")
"""What the `problem_type` of a `config.json` may be."""

ACTIVATIONS: dict[str, Scores] = {"Sigmoid": "sigmoid", "Identity": "number"}
"""The functions that sentence-transformers applies to the logit of a cross-encoder, by the ends of their names."""


def label_scores(values: Mapping[str, Any], count: int, where: str) -> Scores:
    """What the `count` logits of a head are, as transformers reads its `config.json`. UserError for other values.

    A single logit without a `problem_type` is a number: transformers trains such a head as a regression.
    """
    problem = values.get("problem_type")
    if problem not in PROBLEMS:
        known = ", ".join(filter(None, PROBLEMS))
        raise UserError(f"{where} has the problem_type {show_value(problem)}; foveate knows {known}")
    if problem == "regression":
        return "number"
    if problem == "multi_label_classification":
        return "sigmoid"
    if count > 1:
        return "softmax"
    return "sigmoid" if problem else _cross_encoder_scores(values, where)


def _cross_encoder_scores(values: Mapping[str, Any], where: str) -> Scores:
    own = values.get("sentence_transformers")
    newer = own.get("activation_fn") if isinstance(own, Mapping) else None
    name = newer or values.get("sbert_ce_default_activation_function") or "Identity"
    kind = str(name).rpartition(".")[2]
    if kind not in ACTIVATIONS:
        raise UserError(f"{where} has the activation {show_value(name)}; foveate knows {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[kind]


def written_labels(names: Sequence[str], scores: Scores = "softmax") -> dict[str, Any]:
    """What `config.json` says of labels in their order, and of what their logits are."""
    problems: dict[Scores, dict[str, Any]] = {
        "number": {"problem_type": "regression"},
        "sigmoid": {"problem_type": "multi_label_classification"},
        "softmax": {},
    }
    return {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
        **problems[scores],
    }


SQUARES = ("image_size", "patch_size")
"""Fields that files may give as a height and a width."""


class ConfigReader:
    """Reads the fields of a `config.json`; every error names the file."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values, self._where = values, where

    def get(self, name: str, default: Any) -> Any:
        """A number, a switch or None; the default where it is left out. UserError for another type."""
        value = self._values.get(name, default)
        value = self._side(name, value) if name in SQUARES else value
        if value is None:
            return default
        kind = int if default is None else type(default)
        fits = isinstance(value, int | float if kind is float else kind) and isinstance(value, bool) == (kind is bool)
        if not fits or (not isinstance(value, bool) and not 0 <= value < MOST):
            raise UserError(f"{self._where} has the {name} {show_value(value)}, which cannot be")
        return value

    def _side(self, name: str, found: Any) -> Any:
        """The one number of a height and a width that are equal. Raises UnlikeOurs where they differ."""
        if not isinstance(found, list) or len(found) != 2 or not all(type(one) is int and one > 0 for one in found):
            return found
        if found[0] != found[1]:
            raise self.unlike(f"the {name} is {show_value(found)}, but foveate's models have squares")
        return found[0]

    def number(self, name: str, default: float) -> float:
        """A number, which may be negative. UserError for anything else."""
        value = self._values.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MOST:
            raise UserError(f"{self._where} has the {name} {show_value(value)}, which cannot be")
        return float(value)

    def optional(self, name: str, default: Any) -> Any:
        """Likewise, but null in the file is None, not the default."""
        return None if self._values.get(name, default) is None else self.get(name, default)

    def inside(self, *names: str) -> "ConfigReader":
        """The table under the first of these names that is not empty; UserError for what is no table."""
        table: Any = next((self._values[name] for name in names if self._values.get(name)), {})
        if not isinstance(table, Mapping):
            raise UserError(f"{self._where} has the {names[0]} {show_value(table)}, which cannot be")
        return ConfigReader(table, self._where)

    def choices(self, name: str, known: Mapping[Any, Any]) -> list[Any] | None:
        """What each of a list of names stands for, such as one for each layer; None where it is left out."""
        found = self._values.get(name)
        if found is not None and (not isinstance(found, list) or not all(one in known for one in found)):
            raise UserError(
                f"{self._where} has the {name} {show_value(found)}; foveate knows {', '.join(map(str, known))}"
            )
        return None if found is None else [known[one] for one in found]

    def has(self, name: str) -> bool:
        """Returns whether a field has a value."""
        return self._values.get(name) is not None

    def only(self, names: Iterable[str]) -> None:
        """UserError for a field with another name."""
        if other := self._values.keys() - {*names}:
            raise self.unlike(f"unknown field {min(other)!r}")

    def error(self, what: object) -> UserError:
        """What is wrong with the file."""
        return UserError(f"{self._where}: {what}")

    def unlike(self, what: object) -> UnlikeOurs:
        """What the file has and our models have not."""
        return UnlikeOurs(f"{self._where}: {what}")

    def numbers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """A list of sizes, such as one for each stage. UserError for anything else."""
        found = self._values.get(name, list(default))
        fits = isinstance(found, list | tuple) and found and all(type(one) is int and 0 < one < MOST for one in found)
        if not fits:
            raise UserError(f"{self._where} has the {name} {show_value(found)}, which cannot be")
        return tuple(found)

    def choice(self, name: str, default: str, known: Mapping[str, Any]) -> Any:
        """Our name of a choice. UserError for one that our models do not have."""
        value = self._values.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise UnlikeOurs(
                f"{self._where} has the {name} {show_value(value)}; foveate's models have {', '.join(known)}"
            )
        return known[value]

    def require(self, **values: Any) -> None:
        """UserError for a field with another value than the one that our models have."""
        for name, value in values.items():
            found = self._values.get(name, value)
            if found != value and found is not None:
                raise UnlikeOurs(f"{self._where} has {name} {show_value(found)}; foveate's models have {value!r} only")
