"""Recorded sentences with their texts, from packages made by hand."""

import gzip
import io
import wave
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from archives import packages_in, write_archive

from foveate.data.sources import fillets, open_source, prompts
from foveate.data.sources.spoken_parts import plain_text


def sound() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, 8000, 0, "NONE", ""))
        written.writeframes((9000 * np.sin(np.arange(4000) / 9)).astype("<i2").tobytes())
    return file.getvalue()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{first}{second}" for first in "abcde" for second in "vwxyz"]
    texts = {**{f"digits/{name}": f"It's {name}, or..." for name in names}, "beep": "[tone]", "again": "It's av; or"}
    listed = "; In English\n\n" + "".join(f"{name}: {text}\n" for name, text in texts.items())
    share = "usr/share/asterisk/sounds/en_US_f_Allison"
    sounds = {f"{share}/{name}.wav": sound() for name in [*texts, "unknown"]}
    write_archive(
        tmp_path / "asterisk-core-sounds-en.deb", {"usr/share/doc/x/core.txt.gz": gzip.compress(listed.encode())}
    )
    write_archive(tmp_path / "asterisk-core-sounds-en-wav.deb", sounds)
    lines = "".join(
        f'dialogId("{name}", "font_big", "Who (me)?")\ndialogStr("Wie is {name}?")\n\n' for name in [*names, "silent"]
    )
    games = "usr/share/games/fillets-ng"
    write_archive(tmp_path / "fillets-ng-data.deb", {f"{games}/script/ship/dialogs_nl.lua": lines})
    ogg = {f"{games}/sound/ship/nl/{name}.ogg": sound() for name in names}  # WAV is known by its content
    write_archive(tmp_path / "fillets-ng-data-nl.deb", ogg)

    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "cache"))
    for module in (prompts, fillets):
        monkeypatch.setattr(module, "debian_packages", packages_in(tmp_path))


@pytest.mark.parametrize(
    ("name", "module", "text"), [("prompts-en", prompts, "it's av or"), ("fillets-nl", fillets, "wie is av")]
)
def test_three_parts_without_common_texts(packages: None, name: str, module: ModuleType, text: str) -> None:
    splits = open_source(name, task="transcribe")
    parts = [[one.label for one in part] for part in (splits.train, splits.dev, splits.test)]
    assert not set(parts[0]) & {*parts[1], *parts[2]}
    assert len({label for part in parts for label in part}) == 25
    assert text in parts[1]
    assert sum(map(len, parts)) == 25 + (module is prompts)  # two prompts have one text
    assert splits.test[0].seconds == 0.5


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Agent Logged off.", "agent logged off"),
        ("‘D’accord’ - l'heure…", ""),
        ("D’accord, l'heure…", "d'accord l'heure"),
        ("«Занято»", "занято"),
        ("Press 1", ""),
        ("[tone]", ""),
        ("...", ""),
        ("", ""),
    ],
)
def test_texts_of_what_is_heard(text: str, plain: str) -> None:
    assert plain_text(text) == plain
