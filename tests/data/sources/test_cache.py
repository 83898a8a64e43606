"""The cache: whole or not at all."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from foveate.data.sources.cache import cache_folder, fetched
from foveate.errors import UserError


def filled(cache):
    """What lies in the cache, but for the locks."""
    return [path.name for path in cache.iterdir() if path.suffix != ".lock"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_place_of_the_cache(cache, monkeypatch):
    assert cache_folder() == cache
    monkeypatch.delenv("FOVEATE_CACHE")
    assert cache_folder().name == "foveate"


def test_fetched_once_and_announced_once(cache):
    told = []

    def fetch(folder):
        (folder / "data").write_text("whole")

    for _ in range(2):
        assert (fetched("thing-1", fetch, told.append) / "data").read_text() == "whole"
    assert told == [cache / "thing-1"]
    assert filled(cache) == ["thing-1"]


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), UserError("no network")])
def test_a_broken_fetch_leaves_nothing(cache, trouble):
    def fetch(folder):
        (folder / "data").write_text("hal")
        raise trouble

    with pytest.raises(type(trouble)):
        fetched("thing-1", fetch, print)
    assert filled(cache) == []


def test_one_fetches_for_all(cache):
    """Here threads; each holds the lock of its own, as processes do."""
    told = []

    def fetch(folder):
        threading.Event().wait(0.01)

    with ThreadPoolExecutor(3) as threads:
        places = [threads.submit(fetched, "thing-1", fetch, told.append) for _ in range(3)]
        assert {place.result() for place in places} == {cache / "thing-1"}
    assert told == [cache / "thing-1"]


def test_where_there_are_no_locks_another_process_may_be_faster(cache, monkeypatch):
    def refuse(lock):
        raise NotImplementedError

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)

    def fetch(folder):
        (cache / "thing-1").mkdir()
        (cache / "thing-1" / "data").write_text("theirs")

    assert (fetched("thing-1", fetch, print) / "data").read_text() == "theirs"


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"cannot write .*FOVEATE_CACHE can name another folder"):
        fetched("thing-1", print, print)
