"""Where a folder has the template of a chat, and which one counts."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "parity"))

from public_models import folder_of

import foveate
from foveate.data.tokens.chat import TEMPLATES, chat_template
from foveate.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of a tiny Llama."""
    return folder_of("llama", tmp_path / "llama")[0]


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_template_in_a_file_of_its_own(folder: Path, end: str) -> None:
    """As newer folders have it: it counts more than the config's, and is written back with the model."""
    (template,) = TEMPLATES
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "another"}))
    with pytest.raises(UserError, match="chat template is not known to foveate"):
        chat_template(foveate.load(folder).tokenizer)
    (folder / "chat_template.jinja").write_text(template + end)
    skill = foveate.load(folder)
    assert chat_template(skill.tokenizer) is TEMPLATES[template]
    skill.save(folder.parent / "saved")
    assert chat_template(foveate.load(folder.parent / "saved").tokenizer) is TEMPLATES[template]
    (folder / "chat_template.jinja").write_text("{{ another }}")
    with pytest.raises(UserError, match="chat template is not known to foveate, and templates are never run"):
        foveate.load(folder).run("the", chat=True)


@pytest.mark.parametrize("others", [[], [{"name": "tool_use", "template": "another"}], ["default"]])
def test_one_of_several_templates_is_the_default(folder: Path, others: list[Any]) -> None:
    (template,) = TEMPLATES
    several = [*others, {"name": "default", "template": template}]
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
    assert chat_template(foveate.load(folder).tokenizer) is TEMPLATES[template]
    for unknown in (others, {}, 7):
        (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": unknown}))
        with pytest.raises(UserError, match="chat template is not known to foveate"):
            chat_template(foveate.load(folder).tokenizer)


def test_a_template_beyond_the_limit_of_a_file(folder: Path) -> None:
    path = folder / "chat_template.jinja"
    with path.open("wb") as file:
        file.truncate(10 * 2**30)
    with pytest.raises(UserError, match=r"chat_template.jinja has 10,240 MiB; the limit is 128 MiB"):
        foveate.load(folder)
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"chat_template.jinja is damaged: "):
        foveate.load(folder)
