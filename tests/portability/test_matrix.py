"""A conversation that one provider began goes on with any other, whatever has happened to it."""

from __future__ import annotations

import base64

import pytest

from docs.generate_matrix import TARGET, page
from golem import AssistantMessage

from .matrix import SEEDS, cell, leaked, passages, private, texts
from .providers import PNG, PROVIDERS, begun_with


@pytest.mark.parametrize("go_on", PROVIDERS)
@pytest.mark.parametrize("begin", PROVIDERS)
async def test_it_is_taken_whole_and_nothing_foreign_is_sent(begin: str, go_on: str) -> None:
    assert await cell(begin, go_on) == (len(SEEDS), [])


@pytest.mark.parametrize("name", ["OpenAIResponses", "Anthropic", "Gemini", "Bedrock"])
async def test_there_is_something_private_to_look_for(name: str) -> None:
    """Otherwise the matrix would prove little: these providers sign or number what they say."""
    history = await begun_with(name, streamed=True)
    assert private(history)
    assert any(message.thinking for message in history if isinstance(message, AssistantMessage))


@pytest.mark.parametrize("name", ["OpenAIResponses", "Anthropic", "Gemini", "Bedrock"])
async def test_its_own_maker_gets_it_back(name: str) -> None:
    whole = (await passages(name, name))[0]
    assert leaked(whole)


@pytest.mark.parametrize("go_on", PROVIDERS)
async def test_pictures_arrive_too(go_on: str) -> None:
    """One beside a prompt, two in the results of a tool."""
    whole = (await passages("Anthropic", go_on))[0]
    sent = "\n".join(texts(whole.body))
    assert sent.count(base64.b64encode(PNG).decode()) == 3


def test_the_table_in_the_docs_is_what_was_found() -> None:
    assert TARGET.read_text() == page()
