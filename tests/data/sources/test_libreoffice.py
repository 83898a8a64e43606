"""Help pages: segments of hand-written pages, aligned and split."""

from contextlib import contextmanager

from archives import write_archive

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


def test_alignment_by_page_and_id():
    english = {"b/2.html": page(id1="Two", id9="One"), "b.html": page(id5="Five"), "en.html": page(id1="en")}
    french = {"b/2.html": page(id9="Un", id7="Deux"), "b.html": page(id5="Cinq"), "fr.html": page(id1="fr")}
    english["a/1.html"] = page(id1="One", id2="SUM", id3="Three", id4="")
    french["a/1.html"] = page(id3="Trois", id1="Un", id2="SUM", id4="vide")
    # the same words are no translation, an empty segment is none, and the second One, Un is the same pair again
    assert list(aligned(english, french)) == [("One", "Un"), ("Three", "Trois"), ("Five", "Cinq")]


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


def test_the_pages_of_two_packages(tmp_path, monkeypatch):
    """Packages made here stand in for Debian's."""
    asked = []

    @contextmanager
    def packages_of_one_page(names, folder):
        asked.extend(names)
        places = [folder / f"{name}.tgz" for name in names]
        for place, language, text in zip(places, ("en-US", "de"), ("The sea", "Das Meer"), strict=True):
            help_pages = f"usr/share/libreoffice/help/{language}"
            contents = {f"{help_pages}/text/a/1.html": page(id1=text), f"{help_pages}/media/1.html": page(id1="no")}
            write_archive(place, contents)
        yield places

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    monkeypatch.setattr(libreoffice, "debian_packages", packages_of_one_page)
    told = []
    splits = open_source("libreoffice-help", "en", "de", announce=told.append)
    (line,) = told
    assert line.startswith("fetching libreoffice-help (about 15 MB with the lists of packages; licence MPL-2.0) into ")
    assert asked == ["libreoffice-help-en-us", "libreoffice-help-de"]
    assert [pair for text in (splits.train, splits.dev, splits.test) for pair in text] == [("The sea", "Das Meer")]
