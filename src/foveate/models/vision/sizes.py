"""Checks of the families' sizes and of images, which report a mistake in one line."""

from torch import Tensor

from foveate.errors import UserError


def one_for_each_stage(**sizes: tuple[int, ...]) -> None:
    """Raise UserError unless all these fields have one number for each stage, and there is a stage."""
    if len({len(values) for values in sizes.values()}) > 1 or not all(sizes.values()):
        named = " and ".join(f"{name} {values}" for name, values in sizes.items())
        raise UserError(f"{named} must have one number for each stage")


def one_for_each(part: str, count: int, name: str, values: tuple[int, ...]) -> None:
    """Raise UserError unless a field has `count` numbers, one for each of the model's parts of this kind."""
    if len(values) != count:
        raise UserError(f"{name} {values} must have {count} numbers, one for each {part}")


def divide_into(parts: int, name: str, values: tuple[int, ...]) -> None:
    """Raise UserError unless all of a field's numbers are multiples of `parts`."""
    if any(value % parts for value in values):
        raise UserError(f"{name} {values} must be multiples of {parts}, to divide into as many parts")


def at_least_pixels(least: int, pixels: Tensor) -> None:
    """Raise UserError for images that are lower or narrower than `least` pixels."""
    height, width = pixels.shape[-2:]
    if min(height, width) < least:
        raise UserError(f"images of {height} x {width} pixels are too small for this model: it needs {least} x {least}")


def into_patches(patch: int, pixels: Tensor) -> None:
    """Raise UserError for images whose height or width is not a multiple of a patch's."""
    height, width = pixels.shape[-2:]
    if height % patch or width % patch:
        near = " x ".join(str(max(1, round(side / patch)) * patch) for side in (height, width))
        raise UserError(
            f"images of {height} x {width} pixels do not divide into patches of {patch} x {patch}: "
            f"use multiples of {patch}, such as {near}"
        )
