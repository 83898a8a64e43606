"""docs/families.md says what the program has."""

import families

from foveate.interop.public_folder import MODEL_TYPES


def test_the_page_has_every_kind_of_folder() -> None:
    rows = [line.strip("| ").split(" | ") for line in families.PAGE.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row[0].startswith("`") and len(row) == len(families.HEADINGS)]
    assert [row[:-2] for row in rows[1:]] == [families.cells(kind) for kind in MODEL_TYPES]
    assert rows[0] == families.HEADINGS
    errors = [float(row[-1]) for row in rows[1:] if row[-1] != "see its page"]
    assert len(errors) > 5
    assert max(errors) <= 5e-5
