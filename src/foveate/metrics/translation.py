"""How good translations are: BLEU and chrF as sacreBLEU computes them, over all and by the length of the source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

from foveate.data.text.scripts import count_words, is_chinese, unspaced
from foveate.errors import unknown


@dataclass(frozen=True)
class Quality:
    """Corpus scores (0 to 100) of some translations, with the signatures that make them comparable."""

    sentences: int
    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


@dataclass(frozen=True)
class LengthGroup:
    """The quality of the sentences whose source has `shortest` to `longest` words."""

    shortest: int
    longest: int
    quality: Quality

    @property
    def name(self) -> str:
        return f"{self.shortest}" if self.shortest == self.longest else f"{self.shortest}-{self.longest}"


TOKENIZE = ("auto", "13a", "intl", "char", "zh", "none")
"""How sacreBLEU can split words without fetching anything: "13a" is its default, "auto" is that for scripts with
spaces, "zh" for Chinese and "char" for other scripts without spaces, such as Japanese and Thai."""

MOSES = "moses-"
"""Before a language's code: the rules of the Moses toolkit, which older papers counted by. They part "l'homme"."""


def quality(
    translations: Sequence[str], references: Sequence[str], lowercase: bool = False, tokenize: str = "auto"
) -> Quality:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015) of translations against one reference each.

    BLEU counts up to four words in a row. Where no reference has four, and all would score 0, it counts as many as
    there are; its signature then says "eff:yes". `tokenize` says what a word is: see `check_tokenize`.
    """
    tokenize = usual_tokenizer(references) if tokenize == "auto" else tokenize
    split, name = _words(tokenize)
    words, wanted = [split(text) for text in translations], [split(text) for text in references]
    # Without "force", sacreBLEU warns where a text looks tokenised already, as short names without punctuation do.
    counted = partial(BLEU, lowercase=lowercase, force=True, tokenize=name)
    bleu, chrf = counted(), CHRF(lowercase=lowercase)
    if not bleu.corpus_score(wanted, [wanted]).totals[-1]:
        bleu = counted(effective_order=True)
    return Quality(
        sentences=len(translations),
        bleu=bleu.corpus_score(words, [wanted]).score,
        chrf=chrf.corpus_score(list(translations), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()).replace(f"tok:{name}", f"tok:{tokenize}"),
        chrf_signature=str(chrf.get_signature()),
    )


class ResampledQuality:
    """BLEU and chrF of any of some translations, whose words are counted once."""

    def __init__(
        self, translations: Sequence[str], references: Sequence[str], lowercase: bool = False, tokenize: str = "auto"
    ) -> None:
        split, name = _words(usual_tokenizer(references) if tokenize == "auto" else tokenize)
        words, wanted = [split(text) for text in translations], [split(text) for text in references]
        metrics = (
            (BLEU(lowercase=lowercase, force=True, tokenize=name), words, wanted),
            (CHRF(lowercase=lowercase), list(translations), list(references)),
        )
        # As sacreBLEU's own tests of significance do: counts of each sentence, which are added up.
        self._counted = [
            (metric, np.array(metric._extract_corpus_statistics(texts, [right]))) for metric, texts, right in metrics
        ]

    def __call__(self, rows: Sequence[int]) -> dict[str, float]:
        """The metrics of the sentences with these numbers, which may occur several times."""
        chosen = np.fromiter(rows, np.int64)
        scores = [
            metric._compute_score_from_stats(counts[chosen].sum(0).tolist()).score for metric, counts in self._counted
        ]
        return dict(zip(("bleu", "chrf"), scores, strict=True))


def usual_tokenizer(references: Sequence[str]) -> str:
    """What "auto" is for some references."""
    if not unspaced(references):
        return "13a"
    return "zh" if is_chinese(references) else "char"


def check_tokenize(tokenize: str) -> None:
    """Raise UserError for what is neither one of `TOKENIZE` nor "moses-" and a language that Moses has rules for."""
    if tokenize in TOKENIZE:
        return
    from sacremoses.corpus import NonbreakingPrefixes  # half a second, which few need

    known = [f"{MOSES}{language}" for language in NonbreakingPrefixes().available_langs.values()]
    if tokenize not in known:
        raise unknown("way to tokenize", tokenize, [*TOKENIZE, *known])


def _words(tokenize: str) -> tuple[Callable[[str], str], str]:
    """Returns what prepares a text, and by which of sacreBLEU's own ways it is then split."""
    check_tokenize(tokenize)
    if not tokenize.startswith(MOSES):
        return str, tokenize
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(tokenize.removeprefix(MOSES))
    return lambda text: moses.tokenize(text, return_str=True, escape=False), "none"


def quality_by_length(
    sources: Sequence[str],
    translations: Sequence[str],
    references: Sequence[str],
    groups: int = 4,
    lowercase: bool = False,
    tokenize: str = "auto",
) -> list[LengthGroup]:
    """The quality of up to `groups` groups of about equally many sentences, from the shortest sources to the longest.

    Sentences of one length (in words) are never separated.
    """
    lengths = [count_words(source) for source in sources]
    order = sorted(range(len(sources)), key=lambda place: lengths[place])
    found, start, groups = [], 0, min(groups, len(sources))
    for number in range(1, groups + 1):
        end = max(start, round(len(order) * number / groups))
        while start < end < len(order) and lengths[order[end]] == lengths[order[end - 1]]:
            end += 1
        if places := order[start:end]:
            measured = quality([translations[p] for p in places], [references[p] for p in places], lowercase, tokenize)
            found.append(LengthGroup(lengths[places[0]], lengths[places[-1]], measured))
        start = end
    return found


def signatures(measured: Sequence[Quality]) -> list[str]:
    """The signatures of some scores, each once: "BLEU|nrefs:1|...", then those of chrF."""
    names = [f"BLEU|{part.bleu_signature}" for part in measured] + [f"chrF|{part.chrf_signature}" for part in measured]
    return list(dict.fromkeys(names))
