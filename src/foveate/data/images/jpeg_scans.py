"""Counts the scans of a JPEG file, each of which goes over all pixels: a small file may have thousands."""

import re

FORMATS = ("JPEG", "MPO")
"""Pillow's names of such files."""

MOST = 100
"""Scans of a file that was not made to do harm, at most. Progressive files have about ten."""

_SEGMENT = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
"""The marker of a segment; others stand within compressed pixels."""

_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9


def has_too_many_scans(data: bytes) -> bool:
    """Returns whether the content of a file has more scans than `MOST`. What follows the image does not count."""
    place, scans = 2, 0
    while scans <= MOST and (marker := _SEGMENT.search(data, place)) and marker[0][1] != _END_OF_IMAGE:
        scans += marker[0][1] == _START_OF_SCAN
        place = marker.end() + int.from_bytes(data[marker.end() : marker.end() + 2])
    return scans > MOST
