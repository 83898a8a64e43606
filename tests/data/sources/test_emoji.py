"""Names of emoji: read from a wheel made here, laid out as the package's."""

import json
import zipfile

import pytest

from foveate.data.sources import emoji, open_source, packages
from foveate.data.sources.emoji import Name, emoji_messages, emoji_names
from foveate.errors import UserError

ENGLISH = {
    "🥇": {"en": ":1st_place_medal:", "status": 2},
    "🦈": {"en": ":shark:", "status": 2},
    "🖨️": {"en": ":printer:", "status": 2},
    "🖨": {"en": ":printer:", "status": 4},
    "👨‍❤️‍👨": {"en": ":couple_with_heart_man_man:", "status": 2},
    "🆕": {"en": ":not_translated:", "status": 2},
}
FRENCH = {
    "🥇": ":médaille_d’or:",
    "🦈": ":requin:",
    "🖨️": ":imprimante:",
    "🖨": ":imprimante:",
    "👨‍❤️‍👨": ":couple_homme,homme:",
}


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / emoji.WHEEL
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("emoji/unicode_codes/emoji.json", json.dumps(ENGLISH))
        package.writestr("emoji/unicode_codes/emoji_fr.json", json.dumps(FRENCH))
    return path


def test_names(wheel):
    assert emoji_names(wheel, "en", "fr") == [
        Name("🥇", "1st place medal", "médaille d’or"),
        Name("🦈", "shark", "requin"),
        Name("🖨️", "printer", "imprimante"),
        Name("👨‍❤️‍👨", "couple with heart man man", "couple homme, homme"),
    ]
    assert emoji_names(wheel, "fr", "en")[1] == Name("🦈", "requin", "shark")


def test_messages(wheel):
    names = [Name(str(number), f"name {number}", f"nom {number}") for number in range(13)]
    messages = emoji_messages(names, 997, seed=5)
    assert messages == emoji_messages(names, 997, seed=5) != emoji_messages(names, 997, seed=6)
    lengths = [len(message.source.split(", ")) for message in messages]
    assert set(lengths) == {1, 2, 3, 4, 5, 6}
    # 166 expected of each, deviation 12
    assert all(116 < lengths.count(length) < 216 for length in range(1, 7))
    for message in messages:
        numbers = [name.removeprefix("name ") for name in message.source.split(", ")]
        assert len(set(numbers)) == len(numbers)
        assert message.target == ", ".join(f"nom {number}" for number in numbers)
        assert message.emoji == " ".join(numbers)


def many_names(package):
    english = {chr(0x1F300 + number): {"en": f":thing_{number}:"} for number in range(503)}
    package.writestr("emoji/unicode_codes/emoji.json", json.dumps(english))
    french = {character: facts["en"].replace("thing", "chose") for character, facts in english.items()}
    package.writestr("emoji/unicode_codes/emoji_fr.json", json.dumps(french))


def test_no_held_out_name_is_in_training(tmp_path, monkeypatch):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    (tmp_path / f"emoji-{emoji.VERSION}").mkdir()
    with zipfile.ZipFile(tmp_path / f"emoji-{emoji.VERSION}" / emoji.WHEEL, "w") as package:
        many_names(package)
    splits = open_source("emoji", "en", "fr")
    texts = (splits.train, splits.dev, splits.test)
    assert [text.check().kept for text in texts] == [20_000, 500, 1_000]
    train, dev, test = ({name for source in text.sources() for name in source.split(", ")} for text in texts)
    assert not train & dev
    assert not train & test
    assert not dev & test
    assert len(train | dev | test) == 503
    (source, _), note = next(iter(splits.test)), splits.test.notes[0]
    assert [chr(0x1F300 + int(name.split()[1])) for name in source.split(", ")] == note.split()


@pytest.mark.parametrize("content", [None, b"no wheel", b""])
def test_a_damaged_wheel_can_be_fetched_again(tmp_path, monkeypatch, content):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    folder = tmp_path / f"emoji-{emoji.VERSION}"
    folder.mkdir()
    if content is not None:
        (folder / emoji.WHEEL).write_bytes(content)
    with pytest.raises(UserError, match=rf"^{folder} is damaged: cannot read .*; remove it to fetch it again\Z"):
        open_source("emoji")


def test_a_wheel_without_a_language_can_be_fetched_again(tmp_path, monkeypatch):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    (tmp_path / f"emoji-{emoji.VERSION}").mkdir()
    with zipfile.ZipFile(tmp_path / f"emoji-{emoji.VERSION}" / emoji.WHEEL, "w") as package:
        many_names(package)
    with pytest.raises(UserError, match=r"is damaged: 'emoji/unicode_codes/emoji_de.json'; remove it to"):
        open_source("emoji", "en", "de")


def test_another_wheel_is_refused(tmp_path, monkeypatch, wheel):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))

    def deliver(command, purpose, folder):
        (folder / emoji.WHEEL).write_bytes(wheel.read_bytes())

    monkeypatch.setattr(packages, "run", deliver)
    with pytest.raises(UserError, match=r"not the published emoji-2.16.0-py3-none-any.whl: its SHA-256 is another"):
        open_source("emoji", announce=print)
    assert not any(path.is_dir() for path in (tmp_path / "cache").iterdir())


@pytest.mark.slow
def test_the_published_names(tmp_path, monkeypatch, capsys):
    """Needs the network."""
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path))
    splits = open_source("emoji", "en", "fr")
    told = capsys.readouterr().err
    assert told.startswith("fetching emoji (0.6 MB; licence BSD-3-Clause")
    wheel = tmp_path / f"emoji-{emoji.VERSION}" / emoji.WHEEL
    names = emoji_names(wheel, "en", "fr")
    assert len(names) == 4062
    assert Name("🦯", "white cane", "canne blanche") in names
    assert all(len(emoji_names(wheel, "en", language)) > 4000 for language in emoji.LANGUAGES[1:])
    assert splits.train.check().kept == 20_000
