"""The page of data and weights by name, beside the program."""

import sources_page


def test_the_page_says_what_the_program_says() -> None:
    assert sources_page.PAGE.read_text(encoding="utf-8") == sources_page.page()
