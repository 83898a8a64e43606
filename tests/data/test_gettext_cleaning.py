"""Messages as sentences: what is taken off, what stays, what is left out."""

from collections import Counter

import pytest

from foveate.data.gettext.cleaning import fault, sentences, sifted


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        # access keys of GTK, Qt and LibreOffice, at the beginning of a word and inside
        ("_Save _As", "Enregistrer _sous", ("_Save _As", "Enregistrer sous")),
        ("_Open…", "_Ouvrir…", ("Open…", "Ouvrir…")),
        ("E_xit", "Q_uitter", ("Exit", "Quitter")),
        ("Save &As", "Enregistrer &sous", ("Save As", "Enregistrer sous")),
        ("Cu~t", "~Couper", ("Cut", "Couper")),
        ("_Email", "Courriel", ("Email", "Courriel")),
        ("_File", "ファイル(_F)", ("File", "ファイル")),
        ("&Edit", "编辑 (&E)", ("Edit", "编辑")),
        ("Cut && paste", "Couper && coller", ("Cut & paste", "Couper & coller")),
        # what only looks like one
        ("Set user_name now", "Définir user_name", ("Set user_name now", "Définir user_name")),
        ("The inline_handler", "Le gestionnaire", ("The inline_handler", "Le gestionnaire")),
        ("AT&T phones", "Téléphones AT&T", ("AT&T phones", "Téléphones AT&T")),
        ("in ~5 days", "dans ~5 jours", ("in ~5 days", "dans ~5 jours")),
        ("copy ~/.config", "copier ~/.config", ("copy ~/.config", "copier ~/.config")),
        # markup
        ("<b>No</b> file", "<b>Aucun</b> fichier", ("No file", "Aucun fichier")),
        ('<a href="x">Here<br/>now</a>', "Ici<br>tout", ("Here now", "Ici tout")),
        ("usage: cat <file>", "usage : cat <fichier>", ("usage: cat <file>", "usage : cat <fichier>")),
        ("1 &lt; 2 &amp; more", "1 &lt; 2 &#38; plus", ("1 < 2 & more", "1 < 2 & plus")),
        # placeholders and space
        ("%d of {n}\n ${x}", "%1$d de\t{n} ${x}", ("%d of {n} ${x}", "%1$d de {n} ${x}")),
    ],
)
def test_sentences(source, target, expected):
    assert sentences(source, target) == expected


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Open", "Ouvrir", None),
        ("a", "b", None),
        ("file", "文", None),
        ("Menu", "menu", "untranslated"),
        ("%s: %d", "%s : %d", "without words"),
        ("%(name)s {x} $y", "%(nom)s {x} $y", "without words"),
        ("100 %", "", "without words"),
        ("Caf\ufffd", "Café", "with damaged letters"),
    ],
)
def test_faults(source, target, reason):
    assert fault(source, target) == reason


def test_each_pair_once():
    left_out = Counter()
    pairs = [("Open", "Ouvrir"), ("OK", "OK"), ("Open", "Ouvrir"), ("Open", "Ouvert"), ("Open", "Ouvrir")]
    assert list(sifted(pairs, left_out)) == [("Open", "Ouvrir"), ("Open", "Ouvert")]
    assert left_out == {"untranslated": 1, "repeated": 2}


@pytest.mark.parametrize("piece", ["<a <", "%0", "&a", "(", "_a ", "<a>", "{", "%(", "$"])
def test_time_grows_with_the_length_alone(piece):
    """These lengths would take minutes if it grew with the square."""
    pair = sentences(f"word {piece * 30_000}", f"mot {piece * 30_000}")
    assert fault(*pair) is None
    assert pair[0].split()[0] == "word"
