"""Draw the pictures of the documentation anew: those of the examples, and the live page.

    python -m simulations.pictures [--output FOLDER]

The page is that of the payment example in a headless Chromium, which must be there, with selenium.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from simulations.examples import (
    payments,
    river_pipeline,
    sensor_drift,
    server_telemetry,
    text_embeddings,
)
from streamclust import StreamClusterer
from streamclust_adapters.live import Answer, Watched
from streamclust_adapters.web.server import PageServer

EXAMPLES = {
    server_telemetry: 12_000,
    payments: 12_000,
    sensor_drift: 12_000,
    text_embeddings: 6_000,
    river_pipeline: 2_310,
}
WIDTH, HEIGHT = 1100, 960
LOOKS = 60  # at the stream of the page
DRAWN = "return document.querySelectorAll('#answers li').length > 0"


def page(folder):
    """Take a picture of the live page, as it is a while after the fraud has begun."""
    n = 12_000
    model, watched, events = StreamClusterer(), Watched(), list(payments.stream(n))[: 3 * n // 4]
    for at, (x, _) in enumerate(events):
        if len(events) - at <= 12:
            seen = model.assign_one(x)
            told = Answer(at + 1, None, seen.label, str(seen.region), str(model.explain_one(x)))
            watched.answers.append(told)
        model.learn_one(x)
        if at % (n // LOOKS) == 0:
            watched.view(model)
    with PageServer("payments.jsonl", "127.0.0.1", 0) as served:
        served.show(watched.view(model))
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for one in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
            options.add_argument(one)
        service = webdriver.ChromeService(shutil.which("chromedriver"))
        window = webdriver.Chrome(options=options, service=service)
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        window.get(f"http://127.0.0.1:{served.port}/")
        WebDriverWait(window, 60).until(lambda one: one.execute_script(DRAWN))
        window.save_screenshot(str(folder / "page.png"))
        window.quit()


def main():
    """Draw all."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"))
    folder = parser.parse_args().output
    for example, n in EXAMPLES.items():
        print(f"\n{example.__name__}")
        example.main(n, folder)
    page(folder)


if __name__ == "__main__":
    main()
