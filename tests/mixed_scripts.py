"""Lines of text in many scripts."""

import random

SCRIPTS = [
    *(range(0x20, 0x7F), range(0xA0, 0x250), range(0x300, 0x370), range(0x370, 0x530), range(0x590, 0x700)),
    *(range(0x900, 0xA00), range(0xE00, 0xE60), range(0x2000, 0x2070), range(0x3040, 0x3100), range(0x4E00, 0x4F00)),
    *(range(0xAC00, 0xAD00), range(0xFF00, 0xFF60), range(0x1F600, 0x1F650)),
]
"""Latin, combining marks, Greek and Cyrillic, Hebrew and Arabic, Devanagari, Thai, spaces and punctuation, kana,
Chinese, Hangul, full-width forms, emoji."""


def lines(count: int) -> list[str]:
    """Words of one script each, several scripts in a line."""
    draw, found = random.Random(5), []
    for _ in range(count):
        scripts = draw.choices(SCRIPTS, k=draw.randint(1, 4))
        found.append(draw.choice([" ", "  ", "\t"]).join("".join(map(chr, draw.choices(one, k=5))) for one in scripts))
    return found
