"""Hugging Face folders of models that compare images and texts, as skills."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from foveate.data.tokens.public_tokenizer import PublicTokenizer
from foveate.data.tokens.text_tokenizer import TextTokenizer
from foveate.forms.processor import Processor
from foveate.forms.public_image import PublicImage
from foveate.forms.public_match import MatchOptions, PublicFit, PublicImageText
from foveate.interop.public_folder import check_tokenizer, read_folder
from foveate.tasks.checkpoint import ImageFolders, public_recipe
from foveate.tasks.run_config import RunConfig
from foveate.tasks.skill import Skill, skill_class
from foveate.training.hardware import choose_device


class MatcherFolders(ImageFolders):
    """Opens the folders of CLIPs and SigLIPs."""

    def run_options(self, recipe: Any, where: str) -> Any:
        """The flags of `foveate run`."""
        return MatchOptions()

    def load(self, folder: Path | str, device: str = "cpu") -> Skill:
        """The model of a folder. Raises UserError, one line, for whatever is missing, damaged or unknown."""
        folder, task = Path(folder), self._task
        public = read_folder(folder)
        config: Any = public.model.config
        processor = forms_of(folder, config)
        check_tokenizer(processor.writes.tokenizer.largest, public.model)
        model = public.model.to(choose_device(device)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        recipe = public_recipe(task, public, folder, processor)
        description = asdict(RunConfig(task.name, public.family, asdict(config), recipe.as_json()))
        return skill_class(task, processor)(task, recipe, model, processor, description, folder)


def forms_of(folder: Path, config: Any) -> Processor:
    """How the model of a folder, which has this config, reads images and texts. Raises UserError."""
    image, public = PublicImage.of_folder(folder, config.image_size, config.channels), PublicTokenizer.load(folder)
    siglip = config.kind == "siglip"
    writes = PublicFit(
        tokenizer=TextTokenizer.of(public),
        longest=config.max_length,
        apart=siglip,
        plain=siglip and "Siglip" in str(public.config.get("tokenizer_class")),
    )
    return Processor(PublicImageText(**vars(image)), writes)
