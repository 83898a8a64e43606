"""The site of the documentation, built small: what works without a server."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages, built by the settings of the whole site."""
    build = pytest.importorskip("mkdocs.commands.build", reason="mkdocs is not installed: pip install '.[docs]'")
    config = pytest.importorskip("mkdocs.config")
    docs = tmp_path / "docs"
    (docs / "reference").mkdir(parents=True)
    for name in ("iframe-worker.js", "site.css"):
        (docs / name).write_bytes((ROOT / "docs" / name).read_bytes())
    (docs / "index.md").write_text("# Start\n\nNothing but a beginning.\n")
    (docs / "reference" / "scores.md").write_text("# Scores\n\nThe biaffine score multiplies.\n")
    settings = {"docs_dir": str(docs), "site_dir": str(tmp_path / "site"), "hooks": [], "strict": False}
    nav = ["index.md", "reference/scores.md"]
    build.build(config.load_config(str(ROOT / "mkdocs.yml"), nav=nav, **settings))
    return tmp_path / "site"


def test_the_search_works_from_disk(site: Path, chromium: Any) -> None:
    """On a page in a folder too, and without asking for anything from elsewhere."""
    tab = chromium.new_page()
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"file://{site}/reference/scores.html")
    tab.click("input.md-search__input")
    tab.keyboard.type("beginning")
    tab.click(".md-search-result__item a")
    tab.wait_for_url(f"file://{site}/index.html*")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
