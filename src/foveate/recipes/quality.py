"""How good translations are: BLEU and chrF as sacreBLEU computes them, over all and by the length of the source."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import BLEU, CHRF


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


def quality(translations: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Quality:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015) of translations against one reference each.

    BLEU counts up to four words in a row. Where no reference has four, and all would score 0, it counts as many as
    there are; its signature then says "eff:yes".
    """
    # Without "force", sacreBLEU warns where a text looks tokenised already, as short names without punctuation do.
    bleu, chrf = BLEU(lowercase=lowercase, force=True), CHRF(lowercase=lowercase)
    if not bleu.corpus_score(list(references), [list(references)]).totals[-1]:
        bleu = BLEU(lowercase=lowercase, force=True, effective_order=True)
    return Quality(
        sentences=len(translations),
        bleu=bleu.corpus_score(list(translations), [list(references)]).score,
        chrf=chrf.corpus_score(list(translations), [list(references)]).score,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def quality_by_length(
    sources: Sequence[str],
    translations: Sequence[str],
    references: Sequence[str],
    groups: int = 4,
    lowercase: bool = False,
) -> list[LengthGroup]:
    """The quality of up to `groups` groups of about equally many sentences, from the shortest sources to the longest.

    Sentences of one length (in words) are never parted.
    """
    lengths = [len(source.split()) for source in sources]
    order = sorted(range(len(sources)), key=lambda place: lengths[place])
    found, start = [], 0
    for number in range(1, groups + 1):
        end = max(start, round(len(order) * number / groups))
        while start < end < len(order) and lengths[order[end]] == lengths[order[end - 1]]:
            end += 1
        if places := order[start:end]:
            measured = quality([translations[p] for p in places], [references[p] for p in places], lowercase)
            found.append(LengthGroup(lengths[places[0]], lengths[places[-1]], measured))
        start = end
    return found
