"""Puts a trained model into a repository of the Hugging Face hub, from where `foveate.load("hub:org/name")` has it."""

import os
from pathlib import Path
from typing import Any

from foveate import run_dir
from foveate.data.sources.hub import Repository, hub_client, is_hub_name, repository
from foveate.errors import UserError
from foveate.tasks.run_config import WRITTEN, describe
from foveate.training.folder_lock import METRICS

CARD = "README.md"


def push(folder: Path, name: str, private: bool = False) -> list[str]:
    """Put the model of a run folder into the repository "hub:org/name", which is made where there is none.

    Weights, settings and tokenizers are sent in one commit, and a README.md where the repository has none. Returns the
    names of the files. Raises UserError, in one line, for a folder that is no finished run, and where the hub refuses.
    """
    if not is_hub_name(name):
        raise UserError(f"{name} is not a name of a hub's repository; it is hub:ORGANISATION/NAME")
    found = repository(name)
    if found.revision:
        raise UserError(f"{name}: a run is pushed to the main branch; leave out @{found.revision}")
    run = run_dir.load(folder)
    if run.checkpoint is not None:
        raise UserError(f"the training in {folder} has not ended: foveate finish {folder}")
    names = [run_dir.CONFIG, *(name for name in WRITTEN if name != METRICS and (folder / name).is_file())]
    files: dict[str, Any] = {name: folder / name for name in names}
    with hub_client(found) as hub:
        api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)
        api.create_repo(found.name, repo_type="model", private=private or None, exist_ok=True)
        if not api.file_exists(found.name, CARD):
            files[CARD] = card(found, run).encode()
        operations = [hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=file) for name, file in files.items()]
        api.create_commit(found.name, operations, commit_message="Add a model of foveate")
    return list(files)


def card(found: Repository, run: run_dir.RunDir) -> str:
    """The text of the repository's page: what the model is, and how to use it."""
    config = describe(run)
    preset = config.recipe.get("model", config.family)
    return (
        "---\nlibrary_name: foveate\n---\n\n"
        f"# {found.name.rpartition('/')[2]}\n\n"
        f"A model for the task `{run.description.get('task')}`, trained with foveate from the preset `{preset}`.\n\n"
        f'```sh\nfoveate run {found} "..."\nfoveate look {found} "..."\n```\n\n'
        f'```python\nimport foveate\n\nmodel = foveate.load("{found}")\n```\n'
    )
