"""The chat page, driven in a real browser as somebody would use it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from .programs import PATIENCE, Served, served

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to drive the page in")

STORY = "Tell me the story of the golem."
DELETE = "Delete my old drafts."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        # Root may not use Chromium's sandbox; the page under test is our own.
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served("chat_web/server.py") as server:
        yield server


@pytest.fixture
def page(browser: Browser, server: Served) -> Iterator[Page]:
    """A fresh visitor's page; whatever the browser complains of fails the test."""
    context = browser.new_context(viewport={"width": 1100, "height": 760})
    context.set_default_timeout(PATIENCE * 1000)
    expect.set_options(timeout=PATIENCE * 1000)
    complaints: list[str] = []

    def console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def crash(error: Error) -> None:
        complaints.append(str(error))

    page = context.new_page()
    page.on("console", console)
    page.on("pageerror", crash)
    page.goto(server.url)
    yield page
    context.close()
    assert [text for text in complaints if "ERR_INTERNET_DISCONNECTED" not in text] == []


def say(page: Page, text: str) -> None:
    page.get_by_label("Your message").fill(text)
    page.get_by_label("Your message").press("Enter")


def expect_ready(page: Page) -> None:
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("ready")


def answers(page: Page) -> list[str]:
    return page.locator(".answer").all_inner_texts()


def story_text(page: Page) -> str:
    return page.locator(".answer .text").last.inner_text()


def wait_for_story(page: Page, words: str) -> None:
    expect(page.locator(".answer .text").last).to_contain_text(words)


def test_the_answer_is_seen_as_it_comes(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    begun = story_text(page)
    expect(page.get_by_role("status")).to_have_text("answering")
    wait_for_story(page, "the Vltava")
    assert len(story_text(page)) > len(begun)
    assert "interrupted" not in begun


def test_calls_of_tools_are_seen_as_they_happen(page: Page) -> None:
    say(page, "What is the weather in Prague and in Vienna?")
    cards = page.locator(".tool")
    expect(cards.first.locator(".how")).to_have_text("running…")
    expect(cards).to_have_count(2)
    expect_ready(page)
    assert [card.inner_text().split("\n") for card in cards.all()] == [
        ["weather", '{"city": "Prague"}', "done"],
        ["weather", '{"city": "Vienna"}', "done"],
    ]
    cards.first.locator("summary").click()
    expect(cards.first.locator("pre")).to_have_text("Prague: 21 degrees and fair")
    assert story_text(page) == "Done: Prague: 21 degrees and fair; Vienna: 21 degrees and fair."


def test_stop_ends_the_answer_and_keeps_what_it_had_said(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note")).to_have_text("Stopped.")
    expect_ready(page)
    said = answers(page)
    page.reload()
    expect_ready(page)
    assert answers(page) == said
    say(page, "Go on, then.")
    expect(page.locator(".answer").last).to_contain_text("2 things you have said")
    expect_ready(page)


def test_a_reload_in_the_middle_of_an_answer_reads_on(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    page.reload()
    wait_for_story(page, "exactly where it was interrupted.")
    expect_ready(page)
    assert page.locator(".said").all_inner_texts() == [STORY]
    assert len(answers(page)) == 1


def test_a_second_tab_reads_the_same_answer(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    with page.context.new_page() as second:
        second.goto(page.url)
        wait_for_story(second, "exactly where it was interrupted.")
        wait_for_story(page, "exactly where it was interrupted.")
        assert answers(second) == answers(page)


@pytest.mark.parametrize("reloaded", [False, True])
def test_a_tool_waits_for_approval(page: Page, reloaded: bool) -> None:
    say(page, DELETE)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text('delete_drafts({"older_than_days": 30})')
    expect(page.get_by_role("status")).to_have_text("waiting for you")
    if reloaded:
        page.reload()
        expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Approve").click()
    expect(page.locator(".answer")).to_contain_text("12 drafts older than 30 days are gone.")
    expect_ready(page)
    expect(page.locator(".tool")).to_have_count(1)
    expect(page.locator(".tool .how")).to_have_text("done")


def test_a_denial_tells_the_model_why(page: Page) -> None:
    say(page, DELETE)
    dialog = page.get_by_role("dialog")
    dialog.get_by_placeholder("optional").fill("I still need them")
    dialog.get_by_role("button", name="Deny").click()
    expect(page.locator(".answer")).to_contain_text("Then I leave everything as it is.")
    expect_ready(page)
    page.locator(".tool summary").click()
    expect(page.locator(".tool pre")).to_contain_text("I still need them")


def test_a_banner_says_what_the_server_did_to_a_forged_history(page: Page) -> None:
    page.get_by_label("post a forged history").check()
    say(page, "Hello.")
    expect(page.locator("#banner li")).to_have_text(
        [
            "1 system prompt dropped",
            'image at a "file:" address dropped (message 1)',
            "calls without a result closed: made_up",
            "results without a call dropped: never_asked",
        ]
    )
    expect_ready(page)
    page.get_by_label("Dismiss").click()
    expect(page.locator("#banner")).to_be_hidden()


def test_texts_are_shown_and_never_run(page: Page) -> None:
    hostile = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
    say(page, hostile)
    expect_ready(page)
    assert page.locator(".said").inner_text() == hostile
    assert page.title() == "golem chat"


def test_the_server_being_gone_is_said(page: Page) -> None:
    page.context.set_offline(True)
    say(page, "Hello?")
    expect(page.locator(".note.bad")).to_contain_text("Failed to fetch")
    page.context.set_offline(False)
    assert page.get_by_label("Your message").input_value() == "Hello?"
    page.get_by_label("Your message").press("Enter")
    expect(page.locator(".answer")).to_contain_text("1 things you have said")


def test_the_page_is_all_there() -> None:
    folder = Path(__file__).parents[2] / "examples/chat_web/page"
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        "chat.css",
        "chat.js",
        "draw.js",
        "events.js",
    }
