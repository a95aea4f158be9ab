"""The chat page, driven in a real browser as somebody would use it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Route,
    expect,
    sync_playwright,
)

from .programs import PATIENCE, Served, served

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to drive the page in")

STORY = "Tell me the story of the golem."
DELETE = "Delete my old drafts."
PROVOKED = ("ERR_INTERNET_DISCONNECTED", "409 (Conflict)")
"""What Chromium complains of where a test has the network fail, or two answer at once."""


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
    assert [text for text in complaints if not any(known in text for known in PROVOKED)] == []


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


def test_what_one_tab_does_is_in_the_others(page: Page) -> None:
    say(page, "Hello.")
    expect_ready(page)
    with page.context.new_page() as second:
        second.goto(page.url)
        expect(second.locator(".said")).to_have_text(["Hello."])
        say(second, STORY)
        wait_for_story(page, "In Prague")
        page.get_by_role("button", name="Stop").click()
        for tab in (page, second):
            expect(tab.locator(".note")).to_have_text("Stopped.")
            expect_ready(tab)
        page.get_by_role("button", name="New conversation").click()
        expect(second.get_by_text("What shall we do?")).to_be_visible()
        expect(second.locator(".said")).to_have_count(0)


def test_an_approval_is_asked_in_every_tab_and_answered_in_one(page: Page) -> None:
    say(page, DELETE)
    expect(page.get_by_role("dialog")).to_be_visible()
    with page.context.new_page() as second:
        second.goto(page.url)
        second.get_by_role("dialog").get_by_role("button", name="Approve").click()
        for tab in (page, second):
            expect(tab.locator(".answer")).to_contain_text("12 drafts older than 30 days are gone.")
            expect(tab.get_by_role("dialog")).to_be_hidden()
            expect_ready(tab)
            expect(tab.locator(".tool .how")).to_have_text("done")


def test_of_two_answers_at_once_both_tabs_show_the_first(page: Page) -> None:
    say(page, DELETE)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    # Somebody who keeps no storage in common with this page: another browser.
    paused = page.evaluate("JSON.parse(localStorage.getItem('golem-chat')).run")
    call = page.evaluate(f"fetch('runs/{paused}').then((r) => r.json())")["pending"]["approvals"][0]
    answer = {"approvals": {call["callId"]: False}}
    page.request.post(f"{page.url}runs/{paused}/resume", data=answer)
    dialog.get_by_role("button", name="Approve").click()
    expect(page.locator(".answer")).to_contain_text("Then I leave everything as it is.")
    expect_ready(page)


def test_a_new_conversation_stops_what_goes_on(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    run = page.evaluate("JSON.parse(localStorage.getItem('golem-chat')).run")
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_text("What shall we do?")).to_be_visible()
    assert page.evaluate(f"fetch('runs/{run}').then((r) => r.json())")["state"] == "ended"


def test_a_message_that_is_on_its_way_can_be_stopped_and_not_sent_twice(page: Page) -> None:
    held: list[Route] = []
    page.route("**/runs", lambda route: held.append(route))  # playwright marks it
    say(page, STORY)
    expect(page.get_by_role("status")).to_have_text("sending")
    say(page, "And another.")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_function("() => document.querySelector('#fresh').disabled")
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator(".note")).to_have_text("Stopped.")
    expect_ready(page)
    assert page.get_by_label("Your message").input_value() == "And another."
    assert page.locator(".said").all_inner_texts() == [STORY]


def test_the_keyboard_is_enough(page: Page) -> None:
    keys = page.keyboard
    keys.type(DELETE)  # the field has the focus
    keys.press("Enter")
    dialog = page.get_by_role("dialog", name="May I?")
    expect(dialog).to_be_visible()
    keys.press("Enter")  # by who was still typing: answers nothing
    expect(dialog).to_be_visible()
    for _ in range(3):
        keys.press("Tab")
    expect(dialog.get_by_role("button", name="Approve")).to_be_focused()
    keys.press("Enter")
    expect(page.locator(".answer")).to_contain_text("12 drafts older than 30 days are gone.")
    expect_ready(page)
    keys.type(STORY)
    keys.press("Enter")
    wait_for_story(page, "In Prague")
    keys.press("Escape")
    expect(page.locator(".note")).to_have_text("Stopped.")
    expect(page.get_by_label("Your message")).to_be_focused()


def test_who_is_speaking_is_said_to_those_who_do_not_see_it(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    talk = page.get_by_role("log", name="Conversation")
    answer = talk.get_by_role("article", name="golem")
    expect(talk.get_by_role("article", name="You")).to_have_text(STORY)
    expect(answer).to_have_attribute("aria-busy", "true")
    expect_ready(page)
    expect(answer).to_have_attribute("aria-busy", "false")


def test_who_has_scrolled_up_is_left_there(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 420})
    talk = page.get_by_role("log", name="Conversation")
    at_end = "(talk) => talk.scrollTop + talk.clientHeight > talk.scrollHeight - 60"
    say(page, STORY)
    wait_for_story(page, "One evening")
    assert talk.evaluate(at_end)
    talk.evaluate("(talk) => talk.scrollTo(0, 0)")
    wait_for_story(page, "They laid it in the attic.")
    assert talk.evaluate("(talk) => talk.scrollTop") == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390


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


def test_a_server_that_has_forgotten_the_answer_costs_no_words(browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        with served("chat_web/server.py") as first:
            page.goto(first.url)
            say(page, STORY)
            wait_for_story(page, "In Prague")
            first.process.kill()
        expect(page.locator(".note.bad")).to_contain_text("The connection is lost")
        with served("chat_web/server.py", first.port):
            page.get_by_role("button", name="Try again").click()
            expect(page.locator(".note.bad")).to_have_text(
                "The server no longer knows this answer."
            )
            assert page.get_by_label("Your message").input_value() == STORY
            page.get_by_label("Your message").press("Enter")
            wait_for_story(page, "In Prague")


def answer_with(page: Page, events: list[dict[str, Any]]) -> None:
    """Have the next runs answered with these events, all at once."""
    told = [
        {"kind": "run_started", "conversationId": "c"},
        {"kind": "message_added", "message": {"role": "user", "content": STORY}},
        {"kind": "model_started", "attempt": 1},
        *events,
    ]
    body = "".join(
        f"id: r:{seq}\ndata: {json.dumps({**event, 'runId': 'r', 'seq': seq})}\n\n"
        for seq, event in enumerate(told)
    )
    headers = {"golem-run-id": "r", "content-type": "text/event-stream"}
    page.route("**/runs", lambda route: route.fulfill(headers=headers, body=body))


@pytest.mark.parametrize("piece", ["word ", "word\n\n", "```\nx = 1\n```\n"], ids=repr)
def test_an_answer_of_many_small_pieces_is_drawn_as_one_of_few(page: Page, piece: str) -> None:
    messages = [{"role": "user", "content": STORY}, {"role": "assistant", "content": piece * 5000}]
    events: list[dict[str, Any]] = [{"kind": "text_delta", "text": piece}] * 5000
    answer_with(page, [*events, {"kind": "run_finished", "result": {"messages": messages}}])
    say(page, STORY)
    expect(page.locator(".answer.live")).to_have_count(0)
    expect_ready(page)
    drawn = page.locator(".answer").text_content()
    page.reload()
    assert page.locator(".answer").text_content() == drawn


def test_what_came_of_a_run_whose_server_was_killed_is_kept(page: Page) -> None:
    """Such a run ends without evidence: `GET …/events` has `run_stopped` and nothing else."""
    stopped = {"kind": "run_stopped", "reason": "interrupted: the process has ended"}
    answer_with(page, [{"kind": "text_delta", "text": "In Prague, they"}, stopped])
    say(page, STORY)
    for _ in range(2):
        expect_ready(page)
        assert page.locator(".said").all_inner_texts() == [STORY]
        assert story_text(page) == "In Prague, they"
        expect(page.locator(".note")).to_have_text("Stopped.")
        page.reload()


def test_a_stop_that_does_not_arrive_is_said(page: Page) -> None:
    say(page, STORY)
    wait_for_story(page, "In Prague")
    page.route("**/stop", lambda route: route.abort("internetdisconnected"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".note.bad")).to_contain_text("Not stopped")


def test_storage_that_holds_something_else_is_no_obstacle(page: Page) -> None:
    page.evaluate("localStorage.setItem('golem-chat', 'not JSON')")
    page.reload()
    say(page, "Hello.")
    expect(page.locator(".answer")).to_contain_text("1 things you have said")


DRAWN = """async (pieces) => {
    const { Words } = await import("./words.js");
    const box = document.createElement("div");
    const words = new Words(box);
    for (const piece of pieces) {
        words.append(piece);
        words.draw();
    }
    for (const block of box.querySelectorAll(".block")) block.replaceWith(...block.childNodes);
    return box.innerHTML;
}"""
MARKDOWN = """# A *title*

Two lines
of **bold *and weak* text** and `a < b`, 2 * 3 * 4, snake_case_here.

- one
- two: [there](https://example.com/?a=1&b=2)

3. three
4. four

Code:
```python
if a:

    print("**no**")
```
[no](javascript:alert(1)) <b>no</b> ``a ` b``"""
HTML = (
    "<h3>A <em>title</em></h3>"
    "<p>Two lines\nof <strong>bold <em>and weak</em> text</strong> and <code>a &lt; b</code>, "
    "2 * 3 * 4, snake_case_here.</p>"
    '<ul><li>one</li><li>two: <a href="https://example.com/?a=1&amp;b=2" target="_blank" '
    'rel="noopener noreferrer">there</a></li></ul>'
    '<ol start="3"><li>three</li><li>four</li></ol>'
    "<p>Code:</p>"
    '<pre><code>if a:\n\n    print("**no**")</code></pre>'
    "<p>[no](javascript:alert(1)) &lt;b&gt;no&lt;/b&gt; <code>a ` b</code></p>"
)


@pytest.mark.parametrize("size", [1, 2, 7, len(MARKDOWN)])
def test_a_model_s_markdown_is_drawn_however_it_comes(page: Page, size: int) -> None:
    pieces = [MARKDOWN[at : at + size] for at in range(0, len(MARKDOWN), size)]
    assert page.evaluate(DRAWN, pieces) == HTML


def test_an_idea_is_one_click(page: Page) -> None:
    page.get_by_role("button", name="What can you do?").click()
    expect_ready(page)
    expect(page.locator(".answer li")).to_have_count(3)
    expect(page.locator(".answer pre")).to_contain_text("GOLEM_MODEL=")
    drawn = page.locator(".answer").inner_html()
    page.reload()
    assert page.locator(".answer").inner_html() == drawn


def test_what_a_failed_attempt_had_said_goes(page: Page) -> None:
    shown = page.evaluate(
        """async () => {
            const { Answer } = await import("./draw.js");
            const talk = document.createElement("div");
            const answer = new Answer(talk);
            const feed = (kind, rest) => answer.feed({ kind, ...rest });
            feed("model_started", { attempt: 1 });
            feed("text_delta", { text: "Half an ans" });
            feed("tool_call_delta", { index: 0, id: "c", name: "look", args: "{" });
            feed("model_started", { attempt: 2 });
            feed("text_delta", { text: "A whole answer." });
            answer.close();
            return talk.textContent;
        }"""
    )
    assert shown == "Trying again…A whole answer."


def test_the_page_is_all_there() -> None:
    folder = Path(__file__).parents[2] / "examples/chat_web/page"
    assert {path.name for path in folder.iterdir()} == {
        "index.html",
        "chat.css",
        "chat.js",
        "draw.js",
        "events.js",
        "words.js",
    }
