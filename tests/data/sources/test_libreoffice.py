"""Help pages: segments of hand-written pages, aligned and split."""

import shutil

import pytest

from foveate.contracts import UserError
from foveate.data.sources import libreoffice, open_source
from foveate.data.sources.libreoffice import aligned, segments

PAGE = """<!DOCTYPE html><html><head><title>Not this</title></head><body>
<p id="search">nor this</p><div id="par_id0">nor that</div>
<h1 id="hd_id17" dir="auto"><a name="x"></a>Styles &amp;
   Formatting</h1>
<ul><li><p id="par_id23">Press <span class="emph">Close</span>,<br>then <a href="y">save</a>.</p></li></ul>
<p id="par_id29">Choose <span id="s" class="switchinline"><span hidden="true" id="m" class="MAC"><span
class="emph">Preferences</span></span><span hidden="true"><span class="emph">Options</span></span></span> now.</p>
<p id="par_id31">Click the Text icon <img src="z"> .</p>
<p id="par_id37"></p>
<p id="par_id23">Said again.</p>
</body></html>"""


def page(**texts):
    return "".join(f'<p id="par_{identifier}">{text}</p>' for identifier, text in texts.items())


def test_segments_of_a_page():
    assert segments(PAGE) == {
        "hd_id17": "Styles & Formatting",
        "par_id23": "Press Close, then save.",
        "par_id29": "Choose Options now.",
        "par_id31": "Click the Text icon.",
        "par_id37": "",
    }


def test_the_only_wording_of_a_switch_is_kept():
    only = '<p id="par_1"><span class="switchinline"><span hidden="true" class="UNIX">A printer</span></span></p>'
    assert segments(only) == {"par_1": "A printer"}


def test_alignment_by_page_and_id(tmp_path):
    for language, pages in {
        "en": {"a/1.html": page(id1="One", id2="SUM", id3="Three", id4=""), "a/2.html": page(id1="Two", id9="One")},
        "fr": {"a/1.html": page(id3="Trois", id1="Un", id2="SUM", id4="vide"), "a/2.html": page(id9="Un", id7="Deux")},
    }.items():
        for name, content in {**pages, f"{language}.html": page(id1=language)}.items():
            path = tmp_path / language / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    # the same words are no translation, an empty segment is none, and the second One, Un is the same pair again
    assert list(aligned(tmp_path / "en", tmp_path / "fr")) == [("One", "Un"), ("Three", "Trois")]


def test_splits_of_short_segments(tmp_path, monkeypatch):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    folder = tmp_path / "libreoffice-help-en-fr"
    folder.mkdir()
    lines = [f"press key {number}\ttouche {number % 1009}\n" for number in range(2003)]
    lines += [f"{'word ' * 14}\tassez court\n", f"{'word ' * 15}\ttrop long\n"]
    (folder / "segments.tsv").write_text("".join(lines), encoding="utf-8")
    splits = open_source("libreoffice-help")
    texts = [list(text) for text in (splits.train, splits.dev, splits.test)]
    assert sum(map(len, texts)) == 2004
    assert all(len(text) > 20 for text in texts)
    assert "trop long" not in {target for text in texts for _, target in text}
    for side in (0, 1):
        train, dev, test = ({pair[side] for pair in text} for text in texts)
        assert not train & dev
        assert not train & test
        assert not dev & test
    assert splits.dev.name == "libreoffice-help-en-fr.dev"


def test_without_apt_get(tmp_path, monkeypatch):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(UserError, match=r"need apt-get, and this machine has none; .* --data SOURCE TARGET"):
        open_source("libreoffice-help", announce=print)


def test_packages_are_fetched_without_root(tmp_path, monkeypatch):
    """Programs stand in for apt-get and dpkg-deb: what they are asked for, and what is kept of what they bring."""
    asked = []

    def pretend(command, purpose, folder):
        asked.append(command)
        if "download" in command:
            for package in command[command.index("download") + 1 :]:
                (folder / f"{package}_4%3a7.4_all.deb").touch()
        if command[0] == "dpkg-deb":
            package = folder / command[-1] / "usr/share"
            language = "en-US" if "en-us" in command[-1] else "de"
            (package / f"libreoffice/help/{language}/text").mkdir(parents=True)
            (package / "libreoffice/help/media").mkdir()
            text = page(id1="The sea" if language == "en-US" else "Das Meer")
            (package / f"libreoffice/help/{language}/text/1.html").write_text(text)
            (package / f"doc/{command[-1]}").mkdir(parents=True)
            (package / f"doc/{command[-1]}/copyright").write_text("MPL-2.0")

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(libreoffice, "run", pretend)
    told = []
    splits = open_source("libreoffice-help", "en", "de", announce=told.append)
    (line,) = told
    assert line.startswith("fetching libreoffice-help (about 15 MB with the lists of packages; licence MPL-2.0) into ")
    assert [pair for text in (splits.train, splits.dev, splits.test) for pair in text] == [("The sea", "Das Meer")]
    folder = tmp_path / "libreoffice-help-en-de"
    assert sorted(path.name for path in folder.iterdir()) == ["copyright", "segments.tsv"]
    update, download = asked[:2]
    assert update[-1] == "update"
    assert download[-3:] == ["download", "libreoffice-help-en-us", "libreoffice-help-de"]
    states = [option for option in update if option.startswith("Dir::State=")]
    assert len(states) == 1
    assert str(tmp_path) in states[0]


def test_a_failed_update_is_told_only_when_the_download_fails(tmp_path, monkeypatch):
    def offline(command, purpose, folder):
        raise UserError(f"cannot {purpose}: offline")

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(libreoffice, "run", offline)
    with pytest.raises(UserError, match="cannot read Debian's lists of packages"):
        open_source("libreoffice-help", announce=print)
    assert list(tmp_path.iterdir()) == []
