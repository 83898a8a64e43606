"""Records what a model attends to while it runs, measures it afterwards, and changes it."""

from foveate.sight.changer import change
from foveate.sight.changes import Change, Flatten, Knock, Patch, Redirect, Scale, Sharpen
from foveate.sight.drop_in import register
from foveate.sight.effects import Effects, KeyEffects, effects, key_effects
from foveate.sight.from_weights import from_weights, show
from foveate.sight.layouts import Grid, Windows
from foveate.sight.look import look
from foveate.sight.sight import Sight
from foveate.sight.site import Site

__all__ = [
    "Change",
    "Effects",
    "Flatten",
    "Grid",
    "KeyEffects",
    "Knock",
    "Patch",
    "Redirect",
    "Scale",
    "Sharpen",
    "Sight",
    "Site",
    "Windows",
    "change",
    "effects",
    "from_weights",
    "key_effects",
    "look",
    "register",
    "show",
]
