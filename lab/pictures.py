"""``python -m lab.pictures`` makes the pictures of docs/images anew.

They show the report of a real run. Beside them a file keeps a digest of what each shows, by which a
test finds pictures that are older than the pages. It is made from a planted report, and neither
from source nor from pixels: from the texts of the pages in their order, with colors and sizes that
no font and no backend changes.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import typer

from lab.command import run
from reports.html.site import write_site
from reports.judgement import Judgement
from reports.problems import Note
from specs.cases import Case
from specs.errors import CastigateError
from tests.html.planted import cases, planted_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DIGESTS = IMAGES / "pictures.json"
COMMAND = "python -m lab.pictures"
ASKED = (
    *("--backend=ort", "--backend=torch", "--backend=ml_dtypes"),
    *("--document=onnx-cast:25", "--seed=0"),
)
"""The options of the run that the pictures show."""
SATURATING = "onnx-cast:25/float32/float8e4m3fn/saturate:0"
PAIR = "#uses a[href='pair.html#float32/float8e4m3fn']"
SEEN = """
(parts) => {
  const names = [
    "color", "fontSize", "fontWeight", "lineHeight", "paddingTop", "minWidth", "minHeight",
    "writingMode",
  ];
  const background = (element) => {
    const color = element ? getComputedStyle(element).backgroundColor : "";
    return element && color === "rgba(0, 0, 0, 0)" ? background(element.parentElement) : color;
  };
  const styles = (element) => names.map((name) => getComputedStyle(element)[name]);
  const texts = (element) => [...element.childNodes]
    .filter((node) => node.nodeType === Node.TEXT_NODE)
    .map((node) => node.data.replace(/\\s+/g, " ").trim()).filter(Boolean);
  return [...document.querySelectorAll(parts)]
    .flatMap((part) => [part, ...part.querySelectorAll("*")])
    .filter((element) => element.checkVisibility() && texts(element).length)
    .map((element) => [
      texts(element), background(element), styles(element), styles(element.parentElement),
    ]);
}
"""
"""Returns each visible text of some parts of a page, in order, and how it is drawn."""

PIXELS = """
async (data) => {
  const image = await createImageBitmap(await (await fetch(data)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const pixels = canvas.getImageData(0, 0, image.width, image.height).data;
  const reader = new FileReader();
  reader.readAsDataURL(new Blob([pixels]));
  await new Promise((read) => { reader.onload = read; });
  return [image.height, image.width, reader.result.split(",")[1]];
}
"""
"""Returns the height, the width and the bytes in base64 of the image at an address."""


class Picture(NamedTuple):
    """A picture of a page: its window, and what is done before it is taken.

    ``page`` is in the report of the run, ``planted`` in the planted one. ``parts`` selects what is
    in the picture. ``focus`` is an element that is focused, ``top`` one to which the window is
    scrolled.
    """

    page: str
    planted: str
    parts: str
    width: int = 1400
    height: int = 900
    scheme: str = "light"
    focus: str = ""
    top: str = ""


FRONT = (
    "header, main > h1, main > p, section:is([aria-labelledby=news], [aria-labelledby=findings])"
)
MATRICES = "header, main > :not(section), section[aria-labelledby=verdicts]"
FINDING = "finding-ort-maximum.html", "finding-torch-unexplained.html", "header, main"
PORTED = "casts.html#port=torch&into=ort"
PICTURES = {
    "overview": Picture("index.html", "index.html", FRONT),
    "overview-narrow": Picture("index.html", "index.html", FRONT, 400, 860),
    "finding": Picture(*FINDING),
    "finding-narrow": Picture(*FINDING, 400, 860),
    "casts": Picture(PORTED, PORTED, "header, main", height=1300, focus=PAIR),
    "casts-narrow": Picture(PORTED, PORTED, "header, main", 400, 860, focus=PAIR, top="#shown"),
    "matrix": Picture(
        "document-onnx-cast.html", "document-onnx-cast.html", MATRICES, scheme="dark"
    ),
    "layouts": Picture("layouts.html", "layouts.html", "header, main", height=700),
    "case": Picture(f"case.html#{SATURATING}", f"case.html#{SATURATING}", "header, main"),
}
"""The pictures by their names in docs/images."""


def chromium_path() -> str | None:
    """Return the path of Chromium: the variable CHROMIUM, or an installed one; None without."""
    return os.environ.get("CHROMIUM") or which("chromium") or which("chromium-browser")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium for a ``with`` block; raise CastigateError if it is not installed."""
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise CastigateError("Chromium is missing: install it, or set CHROMIUM to its path")
    with sync_playwright() as playwright:
        # As root, in a container, Chromium has no sandbox.
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, site: Path, name: str, picture: Picture) -> Iterator[Page]:
    """Open a page of a report as a picture shows it, and wait until it is drawn."""
    window: Any = {"width": picture.width, "height": picture.height}
    scheme: Literal["dark", "light"] = "dark" if picture.scheme == "dark" else "light"
    context = browser.new_context(viewport=window, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{site.resolve().as_uri()}/{name}")
    drawn = {"casts": "#uses td a", "document": "#matrices a", "case": "#case[data-shown]"}
    for begin, mark in drawn.items():
        if name.startswith(begin):
            page.wait_for_selector(mark, state="attached")
    if picture.focus:
        page.focus(picture.focus)
        page.wait_for_selector("#shown tbody tr")
    if picture.top:
        page.eval_on_selector(picture.top, "(element) => element.scrollIntoView()")
    # The cues of regions that scroll appear after the next layout.
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 100)))")
    yield page
    context.close()


def planted_report(folder: Path) -> Path:
    """Write a report of few planted judgements into a folder, and return it."""
    few = [each for each in cases() if each.id.startswith("onnx-cast:25/float32/float")]

    def check_first(backend: str, case: Case) -> Judgement | None:
        """Plant a check, without which the page of layouts is empty."""
        note = Note("an answer depends on its place")
        check = f"invariances/{case.source}/{case.target}"
        is_first = case == few[0]
        return Judgement(case.id, backend, "open", (note,), check=check) if is_first else None

    write_site([planted_run(folder / "planted", check_first, of=few)], folder / "site")
    return folder / "site"


def shown_digests(browser: Browser, planted: Path) -> dict[str, str]:
    """Return the digest of what each picture shows, by a planted report."""
    found = {}
    for name, picture in PICTURES.items():
        with opened(browser, planted, picture.planted, picture) as page:
            seen = page.evaluate(SEEN, picture.parts)
        found[name] = sha256(json.dumps(seen).encode()).hexdigest()[:16]
    return found


def pictures_command() -> None:
    """Run backends, make a report, and take all pictures of docs/images from it.

    Exit codes: 0 all are made, 2 a backend or Chromium is missing.
    """
    with TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary)
        digests = shown_digests(browser, planted_report(folder))
        _castigate("run", *ASKED, f"--out={folder / 'run'}")
        _castigate("report", str(folder / "run"), f"--out={folder / 'report'}")
        for name, picture in PICTURES.items():
            with opened(browser, folder / "report", picture.page, picture) as page:
                taken = page.screenshot(animations="disabled")
            (IMAGES / f"{name}.png").write_bytes(_with_palette(browser, taken))
    DIGESTS.write_text(f"{json.dumps(digests, indent=2)}\n", encoding="utf-8")
    typer.echo(f"{IMAGES}: {len(PICTURES)} pictures")


def _with_palette(browser: Browser, picture: bytes) -> bytes:
    """Encode a PNG again with the 256 colors that it has most, each other one as the nearest."""
    page = browser.new_page()
    address = f"data:image/png;base64,{b64encode(picture).decode()}"
    height, width, data = page.evaluate(PIXELS, address)
    page.close()
    pixels = np.frombuffer(b64decode(data), np.uint8).reshape(-1, 4)[:, :3]
    colors, which, counts = np.unique(pixels, axis=0, return_inverse=True, return_counts=True)
    palette = colors[np.argsort(-counts, kind="stable")[:256]]
    distances = np.abs(colors[:, None].astype(int) - palette[None]).sum(axis=2)
    indices = distances.argmin(axis=1).astype(np.uint8)[which.reshape(height, width)]
    # Each row begins with its filter: none.
    rows = np.pad(indices, ((0, 0), (1, 0))).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (b"IHDR", head), (b"PLTE", palette.tobytes()), (b"IDAT", zlib.compress(rows, 9))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in (*chunks, (b"IEND", b"")))


def _chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG: its length, kind, data and checksum."""
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def _castigate(*arguments: str) -> None:
    code = "import castigate; castigate.main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=False)
    # A run in which a backend is wrong ends with 1.
    if done.returncode not in (0, 1):
        raise CastigateError(f"`castigate {' '.join(arguments)}` failed; the lines above say why")


if __name__ == "__main__":
    run(pictures_command)
