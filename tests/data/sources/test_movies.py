"""Rated sentences of film reviews: what the table in the package becomes."""

from pathlib import Path

import archives
import pytest

from foveate.data.sources import SOURCES, movies, open_source
from foveate.data.text.labelled import LabelledText

TABLE = (
    "1\t2.3\tA  gripping movie\n"
    "2\t-0.6\tEffective but too tepid\u2028biopic\n"
    "3\t0.0\tIt is a film.\n"
    "4\t-3\tBad.\n"
    "5\t3\tbad.\n"
)


def test_the_sign_of_the_mean_rating_is_the_label() -> None:
    assert list(movies.sentences(TABLE)) == [
        ("positive", "A gripping movie"),
        ("negative", "Effective but too tepid biopic"),
        ("negative", "Bad."),
        ("positive", "bad."),
    ]


def test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sentence on one side, those that agree but for letter case on the same; fetched once, licence beside."""
    lines = [f"{number}\t{(-1) ** number}\tsentence number {number // 2}" for number in range(400)]
    fetched = []

    def package(name: str, version: str, sha256: str, folder: Path) -> Path:
        fetched.append((name, version))
        inner = tmp_path / "inner.tar.gz"
        archives.write_archive(inner, {"hutto/movieReviewSnippets_GroundTruth.txt": "\n".join(lines)})
        path = folder / f"{name}-{version}.tar.gz"
        import tarfile

        with tarfile.open(path, "w:gz") as archive:
            archive.add(inner, f"{name}-{version}/additional_resources/hutto_ICWSM_2014.tar.gz")
        return path

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(movies, "sdist_from_pypi", package)
    told: list[str] = []
    splits = open_source("movie-sentiment", task="classify", announce=told.append)
    parts = [splits.train, splits.dev, splits.test]
    assert all(isinstance(part, LabelledText) for part in parts)
    assert sum(part.check().kept for part in parts) == 400
    sides = [set(part.texts()) for part in parts]
    assert not sides[0] & (sides[1] | sides[2])
    assert not sides[1] & sides[2]
    assert 20 < splits.dev.check().kept < 70
    open_source("movie-sentiment", task="classify", announce=told.append)
    assert fetched == [("vaderSentiment", "3.3.2")]
    assert len(told) == 1
    assert told[0].startswith(f"fetching movie-sentiment (2.5 MB; licence MIT) into {tmp_path / 'cache'}")
    assert SOURCES["movie-sentiment"].tasks == ("classify",)
