"""A recipe with what the names in it mean: its task, its preset, and the trained weights that it begins from."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from torch import nn

from foveate import models
from foveate.config import from_dict
from foveate.errors import UserError
from foveate.forms.form import setting_names
from foveate.forms.image import SquareImage
from foveate.forms.public_image import PublicImage
from foveate.forms.standard_pixels import StandardPixels
from foveate.models.idle_settings import changed_fields, check_settings_act
from foveate.tasks.recipe import Recipe
from foveate.tasks.start.image_part import image_part
from foveate.tasks.start.weights import Start, has_head, open_start
from foveate.training import Training


class Plan:
    """A recipe of a `Task`, the page. The parts that are taken of trained weights (`start/parts.py`) are given one."""

    def __init__(self, page: Any, recipe: Recipe) -> None:
        self.page, self.recipe = page, recipe
        self.report = ""
        """What of the model is trained already and what is new, for the user."""
        self._same_classes = False

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.page.name

    @property
    def families(self) -> tuple[str, ...]:
        return self.page.families

    @property
    def usual_model(self) -> str:
        """The preset that the task begins from where none is named."""
        return self.page.model

    @property
    def start(self) -> Any:
        return self.recipe.start

    @property
    def preset(self) -> models.Preset:
        """The preset that `model` names. Raises UserError where there is none, or it is for another task."""
        return self.page.preset(self.recipe.model)

    @property
    def model(self) -> str:
        return self.recipe.model

    @model.setter
    def model(self, name: str) -> None:
        self.recipe.model = name

    @property
    def architecture(self) -> Any:
        return self.recipe.architecture

    @architecture.setter
    def architecture(self, values: Any) -> None:
        self.recipe.architecture = values

    @cached_property
    def weights(self) -> Start:
        """What `start` names. Raises UserError where there is no model."""
        assert self.start is not None, "there is nothing to begin from"
        found = open_start(self.start)
        reads_images = isinstance(self.page.reads, StandardPixels)
        part = image_part(found) if reads_images and found.family not in self.families else None
        # What classifies images begins with the part of a CLIP or of a detector that reads them.
        return part if part is not None and part.family in self.families else found

    @cached_property
    def image_part(self) -> Start:
        """The part of the trained model that reads images. Raises UserError where there is none."""
        part = image_part(self.weights)
        if part is None:
            raise UserError(f"{self.start} is a {self.weights.family}, which has no part that reads images")
        return part

    def take_classes(self, writes: Any, trained: Any) -> Any:
        """A form that has learned, with its classes in the order of the trained model, if that has the same ones: then
        its head is taken too. `trained` are the forms of a run of the same task."""
        names = self._labels_of_folder if trained is None else trained.writes.class_names
        self._same_classes = bool(names) and {*names} == {*writes.class_names}
        return writes.in_order(names) if self._same_classes else writes

    @property
    def _labels_of_folder(self) -> tuple[str, ...]:
        """The classes of a Hugging Face folder whose head is for the task; one of whole texts may be for pairs."""
        own, wanted = getattr(self.weights.config, "head", None), self.page.head
        return self.weights.labels if wanted in (None, own) or (own, wanted) == ("text", "pair") else ()

    def fill_head(self, model: nn.Module) -> None:
        """Give a model the trained head, where it is for the same classes."""
        kept = self._same_classes and self.weights.fill_head(model)
        head = "its head has the same classes and goes on" if kept else "a new head is learned"
        self.report = f"begins with {self.start}; {head}" if has_head(model) else ""

    def take_images(self) -> None:
        """Read images as the trained model does, in their size and by its mean and deviation of pixels, where the
        settings leave that as the task has it. The size of a run's images holds for images of different sizes."""
        form, usual = self.recipe.reads, self.page.reads
        if isinstance(form, StandardPixels):
            changed = {name: value for name, value in self.weights.images.items() if value is not None}
            left = {name for name in changed if getattr(form, name) == getattr(usual, name)}
            self.recipe.reads = replace(form, **{name: changed[name] for name in left})
            if isinstance(form, SquareImage):
                self.recipe.reads.format = self.weights.image_format
        elif isinstance(form, PublicImage) and self.weights.family not in self.families:
            own = self.weights.images
            side, mean, spread = (own.get(name) for name in ("size", "pixel_mean", "pixel_deviation"))
            side, mean, spread = side or form.height, mean or form.mean, spread or form.spread
            self.recipe.reads = replace(form, height=side, width=side, mean=mean, spread=spread)

    def take_forms(self) -> None:
        """Give the forms the settings that they have in a run of the same task, where the recipe leaves them as is
        usual."""
        run = self.weights.run
        if run is None or run.task != self.task:
            return
        trained = self.page.from_json(run.recipe, str(self.start))
        for part in ("reads", "writes"):
            form, usual, own = (getattr(one, part) for one in (self.recipe, self.page, trained))
            shared = {*setting_names(type(form))} & {*setting_names(type(own))}
            left = [name for name in shared if getattr(form, name) == getattr(usual, name)]
            setattr(self.recipe, part, replace(form, **{name: getattr(own, name) for name in left}))

    def take_settings(self, run: Mapping[str, Any], names: Sequence[str], left_open: bool = False) -> None:
        """Give the forms the settings of these names that the recipe of a trained run has; with `left_open`, only those
        that are None."""
        tables = [table for part in ("examples", "reads", "writes") if isinstance(table := run.get(part), dict)]
        learned = {name: table[name] for table in tables for name in names if name in table}
        for part in ("reads", "writes"):
            form = getattr(self.recipe, part)
            known = {one.name for one in fields(form)}
            own = {name: value for name, value in learned.items() if name in known}
            if left_open:
                own = {name: value for name, value in own.items() if getattr(form, name) is None}
            setattr(self.recipe, part, replace(form, **own))


def has_all_sizes(architecture: Any, model: Any) -> bool:
    """Whether a mapping is that of a trained run: it has the sizes that data decided, which no user gives. Fields that
    are newer than the run may be missing."""
    if not isinstance(architecture, Mapping) or model not in models.presets():
        return False
    family = models.preset(model).family
    decided = models.sizes_of_data(family) or [part.name for part in fields(models.config_class(family))]
    return {*decided} <= architecture.keys()


def settle(page: Any, values: Mapping[str, Any]) -> Recipe:
    """The recipe with these values, in which the preset and trained weights decide what is left open.

    `training` may be a function of the training that is usual. Raises UserError for what does not fit.
    """
    training = values.get("training")
    given = values["architecture"]
    recipe = Recipe(task=page.name, **{**values, "training": Training(), "architecture": given})
    plan = Plan(page, recipe)
    left_open = given is None or isinstance(given, Mapping)
    begins = recipe.start is not None and left_open and not has_all_sizes(given, recipe.model)
    if begins:
        page.start.complete(plan)
        plan.take_forms()
    recipe.training = _plain(training) if isinstance(training, Training) else _usual_training(plan, training)
    preset, given = plan.preset, recipe.architecture
    asked = values["architecture"]
    if given is None or isinstance(given, Mapping):
        recipe.architecture = _architecture(page, preset, given or {}, recipe.model)
        if not has_all_sizes(asked, recipe.model):
            recipe.architecture = _usual_label_bias(recipe.architecture, given or {})
    if isinstance(asked, Mapping) and not has_all_sizes(asked, recipe.model):
        usual = _usual_label_bias(_architecture(page, preset, {}, recipe.model), {})
        check_settings_act(recipe.architecture, asked.keys() & {*changed_fields(recipe.architecture, usual)})
    if not isinstance(recipe.architecture, models.config_class(preset.family)):
        raise UserError(f"{recipe.start or 'the recipe'} has another architecture than {recipe.model}: name a --model")
    if page.forms_for is not None:
        recipe.reads, recipe.writes = page.forms_for(recipe.reads, recipe.writes, recipe.architecture)
    if begins:
        plan.take_images()
    recipe.reads = recipe.reads.fit(recipe.architecture)
    predicts = getattr(recipe.architecture, "head", page.head)
    if page.head is not None and predicts != page.head:
        raise UserError(f"architecture.head is {predicts!r}, but the task {page.name} needs {page.head!r}")
    return recipe


def _usual_training(plan: Plan, changes: Any) -> Training:
    page = plan.page
    tuned = None if plan.start is None else page.start.training(plan)
    usual = page.usual_training(plan.preset) if tuned is None else _plain(tuned)
    found: Training = usual if changes is None else changes(usual)
    return found


def _plain(training: Training) -> Training:
    return Training(**{part.name: getattr(training, part.name) for part in fields(Training)})


def _usual_label_bias(config: Any, given: Mapping[str, Any]) -> Any:
    """A config without a bias for the label of a text where nothing is said of one and transformers could not have it:
    there a causal model has none, and an RMS norm has no bias that could take it up."""
    texts = getattr(config, "head", None) == "text" and hasattr(config, "label_bias")
    if not texts or "label_bias" in given or config.norm_kind == "layer":
        return config
    return replace(config, label_bias=False)


def _architecture(page: Any, preset: models.Preset, given: Mapping[str, Any], model: str) -> Any:
    """The config of a preset with the values given; the sizes that data decides are 0."""
    left_open = dict.fromkeys(models.sizes_of_data(preset.family, required=True), 0)
    kind = models.config_class(preset.family)
    known = {part.name for part in fields(kind)}
    head = {"head": page.head} if page.head is not None and "head" in known else {}
    own = {name: value for name, value in page.architecture.items() if name in known}
    return from_dict(kind, {**left_open, **preset.values, **head, **given, **own}, model)
