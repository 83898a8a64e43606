"""docs/families.md says what the program has."""

import folder_table

from foveate.interop.public_folder import MODEL_TYPES


def test_the_page_has_every_kind_of_folder() -> None:
    rows = [line.strip("| ").split(" | ") for line in folder_table.PAGE.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row[0].startswith("`") and len(row) == len(folder_table.HEADINGS)]
    assert [row[:-2] for row in rows[1:]] == [folder_table.cells(kind) for kind in MODEL_TYPES]
    assert rows[0] == folder_table.HEADINGS
    assert max(float(row[-1]) for row in rows[1:]) <= 5e-5
