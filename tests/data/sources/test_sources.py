"""The table of sources and its one entry point."""

import pytest

from foveate.contracts import UserError
from foveate.data.sources import SOURCES, open_source


def test_every_source_says_what_it_is():
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.task == "translate"
        assert {"en", "fr", "de", "es"} <= set(source.languages)
        assert "MB" in source.size
        assert source.licence
        assert source.about


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("emojis",), "unknown source 'emojis'; did you mean emoji?"),
        (("emoji", "en", "frr"), "unknown language of emoji 'frr'; did you mean fr"),
        (("libreoffice-help", "english", "fr"), "unknown language of libreoffice-help 'english'; "),
        (("emoji", "fr", "fr"), "emoji: source and target language are both 'fr'"),
    ],
)
def test_names_that_do_not_exist(arguments, complaint):
    with pytest.raises(UserError) as caught:
        open_source(*arguments)
    assert str(caught.value).startswith(complaint)
