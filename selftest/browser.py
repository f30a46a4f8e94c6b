"""Open pages in chromium, and record errors, requests and times."""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pages

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# Width in pixels and colours, the one that is measured first.
VIEWS = ((1280, "light"), (1280, "dark"), (400, "light"), (400, "dark"))
FRAMES = 20
PAN = """([scale, frames]) => {
  const { picture } = window.page;
  picture.scale = scale;
  picture.x = 0;
  picture.y = picture.scene.height / 3;
  for (let n = 0; n < frames; n++) { picture.y += 30 / scale; picture.draw(); }
}"""
# Frames that are shown in a second while the picture moves, and when the page was first drawn.
RATE = """(frames) => new Promise((done) => {
  const { picture } = window.page, times = [];
  picture.scale = 1;
  picture.y = picture.scene.height / 3;
  const next = (now) => {
    times.push(now);
    picture.y += 25;
    picture.ask();
    if (times.length <= frames) requestAnimationFrame(next);
    else done(frames / (times[frames] - times[0]) * 1000);
  };
  requestAnimationFrame(next);
})"""
SHOWN = "new Promise((done) => requestAnimationFrame(() => done(performance.now() / 1000)))"
ALL_OF_IT = """() => {
  for (const tab of document.querySelectorAll('[role=tab]')) tab.click();
  window.page.picture.toggleAll();
  window.page.picture.toggleAll();
}"""
# The largest difference between the mean colours of tiles of two pictures; 1 of other sizes.
DIFFERENCE = """async (urls) => {
  const [one, other] = await Promise.all(urls.map(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    const { data, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
    const across = Math.ceil(width / 80);
    const sums = new Float64Array(4 * across * Math.ceil(height / 80));
    for (let n = 0; n < data.length; n++) {
      const pixel = n >> 2, y = Math.floor(pixel / width), x = pixel % width;
      sums[4 * (Math.floor(y / 80) * across + Math.floor(x / 80)) + n % 4] += data[n] / 255 / 6400;
    }
    return { width, height, sums };
  }));
  if (one.width !== other.width || one.height !== other.height) return 1;
  return Math.max(...one.sums.map((sum, n) => Math.abs(sum - other.sums[n])));
}"""
# Of controls and regions that are shown, those that have no name for a screen reader.
NAMELESS = """() => [...document.querySelectorAll('button, select, input, canvas, [tabindex="0"]')]
  .filter(e => e.checkVisibility() && !(e.ariaLabel || e.labels?.length || e.textContent.trim()))
  .map(e => e.outerHTML.slice(0, 200))"""
# What is wrong with a page of that width, while each of its tabs is shown.
EVERY_TAB = f"""(width) => [...document.querySelectorAll('[role=tab]')].flatMap((tab) => {{
  tab.click();
  const wide = document.documentElement.scrollWidth;
  const faults = ({NAMELESS})().map((text) => `no name: ${{text}}`);
  if (wide > width) faults.push(`${{wide}} pixels wide`);
  return faults.map((fault) => `${{tab.textContent}}: ${{fault}}`);
}})"""


# Promises of a page itself: what playwright polls is evaluated, which the page's policy forbids.
WAIT = """(frames) => new Promise((done, failed) => {{
  const look = () => ({condition}) ? done()
    : frames-- > 0 ? requestAnimationFrame(look) : failed(Error(String.raw`never: {condition}`));
  look();
}})"""
DRAWN = "window.page && window.page.picture?.frames !== 0"
_MOST_FRAMES = 3600


def wait_until(tab: Any, condition: str) -> None:
    """Wait until a condition holds in a page, testing it before each frame."""
    tab.evaluate(WAIT.format(condition=condition), _MOST_FRAMES)


class Times(NamedTuple):
    """Times of a page: main-thread seconds until it is drawn, and for a frame at scale 1 and with
    all in view; by the clock, when it was shown, and the frames of a second of panning."""

    opened: float
    near: float
    far: float
    shown: float
    rate: float


class Browser:
    """Opens pages in chromium; ``faults`` lists what they should not have done."""

    def __init__(self, driver: Any) -> None:
        self._started = driver.chromium.launch(executable_path=CHROMIUM)
        self._folder = Path(tempfile.mkdtemp())
        self.faults: list[str] = []

    def fault(self, what: str) -> None:
        """Record and print a fault."""
        self.faults.append(what)
        print(what, file=sys.stderr)

    @contextmanager
    def open(
        self, page: pages.Page, scheme: str = "light", width: int = 1280
    ) -> Iterator[tuple[Any, Any]]:
        """Open a page; yield it with a session that measures it."""
        file = page.write(self._folder / "page.html").as_uri()
        size = {"width": width, "height": 800}
        context = self._started.new_context(viewport=size, color_scheme=scheme)
        tab = context.new_page()
        tab.on("console", lambda message: self.fault(message.text))
        tab.on("pageerror", lambda error: self.fault(str(error)))
        tab.on("request", lambda request: self._asked(request.url, (file, "data:,")))
        session = context.new_cdp_session(tab)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(file)
        wait_until(tab, DRAWN)
        try:
            yield tab, session
        finally:
            context.close()

    def _asked(self, url: str, allowed: tuple[str, ...]) -> None:
        """Record a request that a page should not make."""
        if url not in allowed:
            self.fault(f"asked for {url}")

    def measured(self, page: pages.Page) -> Times:
        """Open a page, pan over it, and expand all that it has; return the times."""
        with self.open(page) as (tab, session):
            opened, shown = _busy(session), float(tab.evaluate(SHOWN))
            frames = []
            for scale in (1.0, 0.01):
                before = _busy(session)
                tab.evaluate(PAN, [scale, FRAMES])
                frames.append((_busy(session) - before) / FRAMES)
            rate = float(tab.evaluate(RATE, 3 * FRAMES))
            tab.evaluate(ALL_OF_IT)
        near, far = frames
        return Times(opened, near, far, shown, rate)

    def check(self, page: pages.Page, name: str, views: Sequence[tuple[int, str]] = VIEWS) -> None:
        """Show each tab of a page in each view; record a fault if it exceeds the width or a control
        has no name."""
        for width, scheme in views:
            with self.open(page, scheme, width) as (tab, _):
                for fault in tab.evaluate(EVERY_TAB, width):
                    self.fault(f"{name}, {width} {scheme}, {fault}")

    def difference(self, one: bytes, other: bytes) -> float:
        """Compute how much two pictures differ: the largest difference, from 0 to 1, of the mean
        colours of tiles of 80 pixels. Other fonts change it little, another layout much."""
        context = self._started.new_context()
        urls = [f"data:image/webp;base64,{base64.b64encode(x).decode()}" for x in (one, other)]
        try:
            return float(context.new_page().evaluate(DIFFERENCE, urls))
        finally:
            context.close()

    def close(self) -> None:
        """Close the browser, and remove its temporary files."""
        self._started.close()
        shutil.rmtree(self._folder)


def _busy(session: Any) -> float:
    """Return the seconds that a page's main thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))
