"""The live page in a browser: it shows the stream, obeys nothing of it, and can be used by all."""

from __future__ import annotations

import json
import random
from contextlib import contextmanager

import pytest

from streamclust.events import ClusterBorn, RefitDone
from streamclust_adapters.live import Answer, Group, View
from streamclust_adapters.lives import Life, Lineage, Link
from streamclust_adapters.web.server import PageServer
from tests.adapters.commands import blobs, lines
from tests.adapters.pages import serving
from tests.browser.conftest import resize

pytest.importorskip("selenium")
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.browser

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title = 'owned'\">",
    "\"><svg onload=document.title='owned'>",
    "javascript:document.title='owned'",
    "a\nevent: state\ndata: {}",
    "__proto__",
    "\u202egnp.exe",
]


def wait(window, condition):
    """Wait until a script tells that it is so."""
    return WebDriverWait(window, 60, 0.05).until(lambda w: w.execute_script(f"return {condition}"))


@contextmanager
def another_page(window):
    """What is done within leads to another document, which is loaded at the end.

    The document is asked, never an element of it: to an element whose document is being replaced
    the driver has several errors. While it is replaced there may be nobody to ask.
    """
    window.execute_script("window.left = false")
    yield
    loaded = "return window.left === undefined && document.readyState === 'complete'"
    WebDriverWait(window, 60, 0.05, ignored_exceptions=[WebDriverException]).until(
        lambda w: w.execute_script(loaded)
    )


def is_quiet(window):
    """Whether the browser's log is empty: no error, nothing refused by the policy."""
    return window.get_log("browser") == []


def shown(k, rule="temp > 54.8 and load <= 0.5", name=None, boxes=2):
    """A view of `k` clusters."""
    draw = random.Random(k)
    lives = {
        n: Life(n, 10 * n, born=n % 3 > 0, parent=None, weights=[(10 * n, 5.0), (6000, 20.0 + n)])
        for n in range(k)
    }
    links = []
    if k > 2:
        lives[2].end, lives[2].ended_by = 3000, "merged"
        links = [Link("split", 10, 0, 1), Link("merge", 3000, 2, 0)]
    groups = [
        Group(n, name, False, 100 + n, 1 / k, 10 * n, tuple([rule] * boxes)) for n in range(k)
    ]
    born = [
        ClusterBorn(number=n, tick=n, time=n, cluster=n, weight=5.0, found_by="refit")
        for n in range(1, 20)
    ]
    drift = RefitDone(
        number=90, tick=4000, time=4000.0, reason="drift", asked=1, clusters=k, noise_share=0.1
    )
    return View(
        events=6000,
        groups=tuple(groups),
        noise=0.04,
        fidelity=0.99,
        changes=(drift, *born[::-1]),
        lineage=Lineage(lives, links, 6000),
        course=tuple((60 * n, draw.uniform(0.02, 0.08)) for n in range(101)),
        alarms=(4000,),
        answers=tuple(Answer(6000 - n, name, n % k, "core", f"{rule}; near") for n in range(12)),
        figures={"events": 6000.0, rule: 0.5},
    )


@pytest.fixture
def page():
    with PageServer("pump.jsonl", "127.0.0.1", 0) as one:
        yield one


def opened(window, page, k=3, **more):
    page.show(shown(k, **more))
    window.get(f"http://127.0.0.1:{page.port}/")
    wait(window, "document.querySelectorAll('#clusters tbody tr').length > 0")


def test_it_shows_everything_and_complains_of_nothing(window, page):
    opened(window, page)
    text = window.find_element(By.TAG_NAME, "body").text
    for told in ("pump.jsonl", "6,000", "4.0 %", "temp > 54.8", "Drift alarm", "Cluster born"):
        assert told in text
    assert len(window.find_elements(By.CSS_SELECTOR, "#timeline path.band")) == 3
    assert len(window.find_elements(By.CSS_SELECTOR, "#timeline .picture path.dashed")) == 1
    assert len(window.find_elements(By.CSS_SELECTOR, "#noise .picture path.alarm")) == 1
    assert len(window.find_elements(By.CSS_SELECTOR, "#answers li")) == 12
    assert window.title == "pump.jsonl – streamclust"
    assert is_quiet(window)


def test_an_empty_page_says_what_it_waits_for(window, page):
    page.show(View())
    window.get(f"http://127.0.0.1:{page.port}/")
    wait(window, "document.querySelector('#now dd')?.textContent === '0'")
    assert "No cluster yet." in window.find_element(By.ID, "clusters").text
    assert not window.find_element(By.CSS_SELECTOR, "#clusters table").is_displayed()
    assert is_quiet(window)


def test_it_is_live(window, page):
    opened(window, page)
    row = window.find_element(By.CSS_SELECTOR, "#clusters tbody tr")
    page.show(shown(5))
    wait(window, "document.querySelectorAll('#clusters tbody tr').length === 5")
    assert row.is_displayed()  # the row of a cluster that stays is the same element
    page.end("the stream has ended")
    wait(window, "document.getElementById('state').dataset.state === 'ended'")
    assert is_quiet(window)


def test_it_can_be_paused_and_goes_on(window, page):
    opened(window, page)
    pause = window.find_element(By.ID, "pause")
    pause.click()
    page.show(shown(5))
    page.end("told after the clusters")
    wait(window, "document.getElementById('state').textContent.includes('told after')")
    assert pause.get_attribute("aria-pressed") == "true"
    assert len(window.find_elements(By.CSS_SELECTOR, "#clusters tbody tr")) == 3
    pause.click()
    assert len(window.find_elements(By.CSS_SELECTOR, "#clusters tbody tr")) == 5


@pytest.mark.parametrize("text", HOSTILE)
def test_what_comes_with_the_stream_is_only_text(window, page, text):
    opened(window, page, rule=text, name=text)
    for place in ("#clusters .rule p", "#clusters small", "#answers .when", "#figures dt"):
        told = [
            window.execute_script("return arguments[0].textContent", one)
            for one in window.find_elements(By.CSS_SELECTOR, place)
        ]
        assert any(text.replace("_", " ") in one.replace("_", " ") for one in told), place
    assert window.title == "pump.jsonl – streamclust"
    assert not window.find_elements(By.CSS_SELECTOR, "main img, main script, main a, [onload]")
    assert is_quiet(window)


def test_the_policy_stops_what_would_run_all_the_same(window, page):
    opened(window, page)
    refused = "try { document.body.innerHTML = '<b>x</b>'; return '' } catch (e) { return e.name }"
    assert window.execute_script(refused) == "TypeError"
    window.execute_script(
        "const one = new Image(); one.src = 'http://127.0.0.1:9/x'; document.body.append(one);"
    )
    WebDriverWait(window, 60, 0.05).until(
        lambda w: any("Content Security Policy" in one["message"] for one in w.get_log("browser"))
    )
    assert window.title == "pump.jsonl – streamclust"


def test_everything_is_reached_by_the_keyboard_and_seen_there(window, page):
    opened(window, page, k=20)
    reached = []
    for _ in range(5):
        ActionChains(window).send_keys(Keys.TAB).perform()
        one = window.switch_to.active_element
        outline = (
            one.value_of_css_property("outline-width"),
            one.value_of_css_property("outline-style"),
        )
        assert outline == ("3px", "solid")
        assert one.is_displayed()
        reached.append(one.text)
    assert reached == ["Skip to the clusters", "Pause", "Show all 20", "Show all 20", "Show"]
    window.find_element(By.CSS_SELECTOR, "#clusters .more").send_keys(Keys.ENTER)
    assert len(window.find_elements(By.CSS_SELECTOR, "#clusters tbody tr")) == 20
    window.find_element(By.CLASS_NAME, "skip").send_keys(Keys.ENTER)
    assert window.switch_to.active_element.get_attribute("id") == "clusters"
    assert is_quiet(window)


def test_there_are_landmarks_and_every_part_has_a_name(window, page):
    opened(window, page)
    assert len(window.find_elements(By.CSS_SELECTOR, "main, header, h1")) == 3
    for one in window.find_elements(By.CSS_SELECTOR, "section, button, svg[role=img], #now"):
        if one.is_displayed():
            assert one.accessible_name, one.get_attribute("outerHTML")[:100]
    assert window.find_element(By.ID, "state").get_attribute("role") == "status"


@pytest.mark.parametrize("k", [0, 3, 50])
def test_a_narrow_screen_needs_no_sideways_scroll(window, page, k):
    resize(window, 375)
    if k:
        long = "_".join(["a_feature_with_a_long_name"] * 5)
        opened(window, page, k=k, rule=f"-19.3 < {long} <= 0.525 and vibration > 7", name=long)
    else:
        page.show(View())
        window.get(f"http://127.0.0.1:{page.port}/")
        wait(window, "document.querySelector('#now dd')?.textContent === '0'")
    assert window.execute_script("return window.innerWidth") == 375
    assert window.execute_script("return document.documentElement.scrollWidth") <= 375
    wide = "e => e.getBoundingClientRect().right > 376"
    out = f"return [...document.querySelectorAll('main *')].filter({wide}).map(e => e.className)"
    assert window.execute_script(out) == []
    assert is_quiet(window)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_in_both_schemes(window, page, scheme):
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    opened(window, page)
    for place in ("h2", ".hint", ".rule", "#now dd.alert", "#changes .when", "#pause"):
        one = window.find_element(By.CSS_SELECTOR, place)
        assert contrast(window, one) >= 4.5, place
    window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def contrast(window, element):
    """The ratio of a text's luminance to that of what is behind it, as WCAG counts it."""
    behind = "let e = arguments[0]; let c; do { c = getComputedStyle(e).backgroundColor; "
    behind += "e = e.parentElement } while (c === 'rgba(0, 0, 0, 0)'); return c"
    colours = [
        window.execute_script("return getComputedStyle(arguments[0]).color", element),
        window.execute_script(behind, element),
    ]
    low, high = sorted(luminance(*json.loads(f"[{one[4:-1]}]")) for one in colours)
    return (high + 0.05) / (low + 0.05)


def luminance(*colour):
    parts = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def test_a_stranger_is_asked_for_the_token(window):
    token = "a token of some length"
    with PageServer("pump.jsonl", "127.0.0.1", 0, token=token) as page:
        page.show(shown(3))
        window.get(f"http://127.0.0.1:{page.port}/")
        for word in ("wrong", token):
            assert window.switch_to.active_element.accessible_name == "Token of this page"
            with another_page(window):
                ActionChains(window).send_keys(word, Keys.ENTER).perform()
        wait(window, "document.querySelectorAll('#clusters tbody tr').length === 3")
        assert token not in window.page_source + window.current_url


def test_it_comes_back_when_the_server_does(window, tmp_path):
    events = blobs(400, seed=1, k=3)
    (tmp_path / "one.jsonl").write_bytes(lines(events[:200]))
    (tmp_path / "two.jsonl").write_bytes(lines(events))
    with serving("--source", tmp_path / "one.jsonl", "--ignore", "id") as (process, port):
        window.get(f"http://127.0.0.1:{port}/")
        wait(window, "document.querySelector('#now dd')?.textContent === '200'")
        assert is_quiet(window)
        process.terminate()
        assert process.wait(60) == 0
        wait(window, "document.getElementById('state').dataset.state === 'lost'")
    with serving("--source", tmp_path / "two.jsonl", "--ignore", "id", "--port", port):
        wait(window, "document.querySelector('#now dd')?.textContent === '400'")
        assert "two.jsonl" in window.title
        assert "two.jsonl" in window.find_element(By.ID, "state").text
