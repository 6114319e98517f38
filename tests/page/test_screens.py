"""Pictures of each view in both themes. `HARKEN_SCREENSHOTS=1` puts them into the documents."""

from __future__ import annotations

import os
import re
from io import BytesIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .conftest import Served, visiting
from .test_views import VIEWS, ready

pytestmark = pytest.mark.page

PICTURES = Path(__file__).parents[2] / "docs" / "img"
LARGEST = 300_000


def smaller(png: bytes) -> bytes:
    """The same picture with 256 colours, where there is something that can choose them."""
    try:
        from PIL import Image
    except ImportError:
        return png
    made = BytesIO()
    Image.open(BytesIO(png)).convert("RGB").quantize(256).save(made, "PNG", optimize=True)
    return min(png, made.getvalue(), key=len)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_picture_of_each_view_is_made(
    name: str, theme: str, browser: Browser, served: Served, sessions: dict[str, str], tmp_path: Path
) -> None:
    folder = PICTURES if os.environ.get("HARKEN_SCREENSHOTS") == "1" else tmp_path
    for visit in visiting(browser, served, color_scheme=theme):
        page = visit.open(VIEWS[name].format(**sessions))
        ready(page)
        picture = smaller(page.screenshot(animations="disabled"))
        assert LARGEST > len(picture)
        (folder / f"page-{re.sub(' ', '-', name)}-{theme}.png").write_bytes(picture)
