"""Tables that name files: those outside the table's folder are read only where that is allowed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import made_examples
import pytest

from foveate.data.folders import allowing_outside, listed_file
from foveate.data.images.labelled import labelled_images
from foveate.errors import UserError
from foveate.tasks import TASKS, find_task
from foveate.tasks.recipe import FileExamples

Fails = Callable[..., str]


@pytest.mark.parametrize("name", TASKS)
def test_links_out_of_the_folder_of_a_table(name: str, tmp_path: Path) -> None:
    """Every task whose table names files refuses them, has the flag, and reads them with it."""
    task = find_task(name)
    made = made_examples.examples_of(task, tmp_path / "own")
    table, *others = made.data
    if table.is_dir() or others or len([*table.parent.iterdir()]) == 1:
        return  # there is no table, or nothing that it could name
    (tmp_path / "linked").mkdir()
    for place in table.parent.iterdir():
        if place != table:
            (tmp_path / "linked" / place.name).symlink_to(place)
    copy = Path(shutil.copy(table, tmp_path / "linked"))
    known = {"model": task.model, "data": copy}
    assert isinstance(task.examples, FileExamples)
    with pytest.raises(UserError, match=r"linked/.* is outside the folder .*; --allow-outside reads such files too$"):
        task.read_files((copy,), task.recipe(**known))
    allowed = task.read_files((copy,), task.recipe(**known, allow_outside=True))
    assert len(allowed) == len(task.read_files((table,), task.recipe(**known)))


@pytest.mark.parametrize("name", ["../out.png", "ABSOLUTE", "link.png", "linked/out.png", "in/../../out.png"])
def test_names_that_lead_out_of_a_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "in").mkdir(parents=True)
    (tmp_path / "out.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "out.png")
    (folder / "linked").symlink_to(tmp_path)
    given = name.replace("ABSOLUTE", str(tmp_path / "out.png"))
    with pytest.raises(UserError, match=r"^here: .*out.png|link.png is outside the folder "):
        listed_file(folder, given, "here")
    with allowing_outside(True):
        assert listed_file(folder, given, "here").read_bytes() == b"secret"
    with pytest.raises(UserError, match="outside"):
        listed_file(folder, given, "here")


def test_names_that_stay_in_a_folder(tmp_path: Path) -> None:
    """Also if the folder is named through a link, or the names go up and down."""
    (tmp_path / "folder" / "in").mkdir(parents=True)
    (tmp_path / "folder" / "a.png").touch()
    (tmp_path / "folder" / "b.png").symlink_to("a.png")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for folder in (tmp_path / "folder", tmp_path / "link"):
        for name in ("a.png", "b.png", "in/../a.png", str(folder / "a.png")):
            assert listed_file(folder, name, "here").is_file()
    for name in ("c.png", "in", "x" * 5000, "a\0b", ""):
        with pytest.raises(UserError, match=r"^here: there is no file "):
            listed_file(tmp_path / "folder", name, "here")


def test_a_table_of_images_may_not_name_other_files(tmp_path: Path) -> None:
    (tmp_path / "table.tsv").write_text("/etc/hostname\tsecret\n")
    with pytest.raises(UserError, match=r"^.*table.tsv, line 1: /etc/hostname is outside the folder "):
        labelled_images(tmp_path / "table.tsv")


@pytest.mark.parametrize("name", TASKS)
def test_loops_and_odd_names_in_folders_of_data(name: str, tmp_path: Path) -> None:
    """Links that lead to themselves or up are not followed, and files may have names that are not UTF-8."""
    task = find_task(name)
    made = made_examples.examples_of(task, tmp_path / "own")
    folder = made.data[0]
    if not folder.is_dir():
        return
    recipe = task.recipe(model=task.model, data=folder)
    count = len(task.read_files((folder,), recipe))
    for place in [folder, *(place for place in folder.rglob("*") if place.is_dir())]:
        (place / "loop").symlink_to("loop")
        (place / "loop.png").symlink_to("loop.png")
        (place / "up").symlink_to("..")
    for file in [file for file in folder.rglob("*") if file.is_file()]:
        file.rename(file.with_name(os.fsdecode(b"\xff") + file.name))
    assert len(task.read_files((folder,), recipe)) == count
