"""Folders of bodies alone, such as a `Qwen3Model`: their texts get vectors, and trainings begin with a new head."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from folders import CAUSAL, FOLDERS

import foveate
from foveate.errors import UserError
from foveate.interop.public_folder import read_folder
from foveate.tasks import find_task
from foveate.tasks.learning import Lesson
from foveate.tasks.start.weights import HEADS

TEXT = "the keeper lit the lamp"

UNTIED = [kind for kind, folder in FOLDERS.items() if folder.heads["words"] == CAUSAL["words"]]

BARE = [*UNTIED, "bert", "deberta"]


@pytest.mark.parametrize("kind", BARE)
def test_a_body_alone(kind: str, tmp_path: Path) -> None:
    config = deepcopy(FOLDERS[kind].config)
    config.tie_word_embeddings = kind not in UNTIED
    theirs = replace(FOLDERS[kind], config=config, heads={"none": "AutoModel"}).write("none", tmp_path / "body")
    body, tokens = read_folder(tmp_path / "body").model, torch.randint(3, 50, (1, 13))
    with torch.no_grad():
        hidden = theirs(tokens).last_hidden_state
        torch.testing.assert_close(body(tokens).logits, hidden, atol=FOLDERS[kind].close, rtol=0)
    assert len(foveate.load(tmp_path / "body").run(TEXT).vector) == hidden.shape[-1]

    data = tmp_path / "prose.txt"
    data.write_text(TEXT)
    task = find_task("language" if kind in UNTIED else "cloze")
    lesson = Lesson(task, task.recipe(data=data, start=tmp_path / "body", out=tmp_path / "run"))
    own = lesson.build().state_dict()
    assert any(name.startswith(HEADS) for name in own)
    for name, value in body.state_dict().items():
        torch.testing.assert_close(own[name], value, msg=name)
    assert lesson.plan.report == f"begins with {tmp_path / 'body'}, which has no head: a new one is learned"


def test_there_is_nothing_to_tune_without_a_head(tmp_path: Path) -> None:
    config = deepcopy(FOLDERS["llama"].config)
    config.tie_word_embeddings = False
    replace(FOLDERS["llama"], config=config, heads={"none": "AutoModel"}).write("none", tmp_path)
    task = find_task("dpo")
    with pytest.raises(UserError, match="predicts 'none', but dpo needs a model of 'words'"):
        Lesson(task, task.recipe(data=tmp_path, start=tmp_path, out=tmp_path / "run")).check()
