"""The conformance suite itself: an adapter with a fault fails, at the check for that fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.messages import AssistantMessage, ToolMessage
from golem.model import Delta, Details, Request, Response, TextDelta
from golem.testing.conformance import CHECKS, Subject, conforms
from golem.testing.judge import ChatJudge, Judge
from golem_adapters import OpenAI

BY_NAME = {check.__name__: check for check in CHECKS}


class Faulty:
    """OpenAI's adapter, with hooks for what can be wrong with one."""

    def __init__(self, judge: Judge, **options: Any) -> None:
        self.judge = judge
        self.inner = OpenAI("m", base_url=judge.base_url, api_key=judge.key, **options)

    def asks(self, request: Request) -> Request:
        return request

    def answers(self, response: Response) -> Response:
        return response

    def fails(self, error: ProviderError) -> Exception:
        return error

    def gives(self, item: Delta | Response) -> list[Delta | Response]:
        return [item]

    async def generate(self, request: Request) -> Response:
        try:
            return self.answers(await self.inner.generate(self.asks(request)))
        except ProviderError as error:
            raise self.fails(error) from None

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        stream = self.inner.stream(self.asks(request))
        try:
            async for item in stream:
                for given in self.gives(item):
                    yield given
        except ProviderError as error:
            raise self.fails(error) from None
        finally:
            await stream.aclose()


class LosesText(Faulty):
    def gives(self, item: Any) -> list[Any]:
        if isinstance(item, Response):
            return [replace(item, message=replace(item.message, content="It"))]
        return [item]


class LosesDeltas(Faulty):
    def gives(self, item: Any) -> list[Any]:
        return [item] if isinstance(item, Response) else []


class SaysNothing(Faulty):
    def gives(self, item: Any) -> list[Any]:
        return [TextDelta(""), item]


class EndsTwice(Faulty):
    def gives(self, item: Any) -> list[Any]:
        return [item, item] if isinstance(item, Response) else [item]


class CountsNothing(Faulty):
    def answers(self, response: Response) -> Response:
        return Response(response.message, finish_reason=response.finish_reason)


class ForgetsWhoAnswered(Faulty):
    def answers(self, response: Response) -> Response:
        return replace(response, details=Details())


class KnowsNoReason(Faulty):
    def answers(self, response: Response) -> Response:
        return replace(response, finish_reason="stop")


class GivesAllAtOnce(Faulty):
    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        for item in [item async for item in self.inner.stream(request)]:
            yield item


class SharesOneId(Faulty):
    def answers(self, response: Response) -> Response:
        calls = tuple(replace(call, id="c") for call in response.message.tool_calls)
        return replace(response, message=replace(response.message, tool_calls=calls))

    def gives(self, item: Any) -> list[Any]:
        return [self.answers(item)] if isinstance(item, Response) else [item]


class TrustsHistories(Faulty):
    """Sends what it was given, orphans of an edit included."""

    def asks(self, request: Request) -> Request:
        return replace(
            request, messages=[m for m in request.messages if not isinstance(m, ToolMessage)]
        )


class CountsRequests(Faulty):
    count = 0

    def asks(self, request: Request) -> Request:
        CountsRequests.count += 1
        first, *rest = request.messages
        return replace(
            request, messages=[replace(first, content=f"{self.count}{first.content}"), *rest]
        )


class ForgetsSettings(Faulty):
    def asks(self, request: Request) -> Request:
        return replace(request, settings=None)


class TellsEverything(Faulty):
    def asks(self, request: Request) -> Request:
        first, *rest = request.messages
        return replace(
            request, messages=[replace(first, content=first.content + first.run_id), *rest]
        )


class NeverRetries(Faulty):
    def fails(self, error: ProviderError) -> Exception:
        error.retryable = False
        return error


class AlwaysRetries(Faulty):
    def fails(self, error: ProviderError) -> Exception:
        error.retryable = True
        return error


class DoesNotWait(Faulty):
    def fails(self, error: ProviderError) -> Exception:
        if isinstance(error, APIError):
            error.retry_after = None
        return error


class LosesWhatCame(Faulty):
    def fails(self, error: ProviderError) -> Exception:
        error.partial = None
        return error


class ShowsTheKey(Faulty):
    def __repr__(self) -> str:
        return f"Faulty({self.judge.key})"


class WrongKind(Faulty):
    def fails(self, error: ProviderError) -> Exception:
        return TransportError(str(error), retryable=error.retryable, partial=error.partial)


class TakesHalves(Faulty):
    """Takes a stream that ended for whole."""

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        try:
            async for item in self.inner.stream(request):
                yield item
        except TransportError as error:
            yield Response(error.partial or AssistantMessage(), finish_reason="stop")


class FollowsRedirects(Faulty):
    async def generate(self, request: Request) -> Response:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            url = self.judge.base_url + self.judge.provider.path
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            headers = {"authorization": f"Bearer {self.judge.key}"}
            await client.post(url, json=body, headers=headers)
        return await self.inner.generate(request)


class RenamesTools(Faulty):
    def answers(self, response: Response) -> Response:
        calls = tuple(replace(call, name="look") for call in response.message.tool_calls)
        return replace(response, message=replace(response.message, tool_calls=calls))


class Remembers(Faulty):
    """Gives one task what another asked for."""

    answer: Response | None = None

    def answers(self, response: Response) -> Response:
        self.answer = self.answer or response
        return self.answer


class Breathes(Faulty):
    """Plain answers have a blank more."""

    def answers(self, response: Response) -> Response:
        message = response.message
        return replace(response, message=replace(message, content=f"{message.content} "))


class WorksOnce(Faulty):
    async def generate(self, request: Request) -> Response:
        if self.judge.requests:
            raise ProtocolError("no more")
        return await super().generate(request)


class LeavesStreams(Faulty):
    """Hands the stream out under a name that cannot be closed."""

    def stream(self, request: Request) -> Any:
        return _Unclosable(self.inner.stream(request))


class _Unclosable:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await self._stream.__anext__()


def at(dialect: str) -> Subject:
    """An adapter that believes to speak to OpenAI."""
    return Subject(Faulty, partial(ChatJudge, dialect=dialect))


FAULTS: list[tuple[type[Faulty] | Subject, str]] = [
    (Faulty, "thinking_is_the_same_plain_and_streamed"),  # its judge gives none
    (at("mistral"), "any_repaired_history_is_taken"),
    (at("mistral"), "what_the_provider_said_goes_back"),
    (at("moonshot"), "tools_and_choices_are_taken_or_refused"),
    (at("deepseek"), "an_output_schema_is_taken_or_refused"),
    (at("azure"), "media_is_taken_or_refused"),
    (RenamesTools, "a_tool_is_called_by_its_own_name"),
    (Remembers, "requests_at_once_get_their_own_answers"),
    (Breathes, "an_odd_but_whole_answer_is_taken"),
    (Breathes, "a_run_is_the_same_plain_and_streamed"),
    (WorksOnce, "a_dropped_request_is_sent_again_or_an_error"),
    (TakesHalves, "a_run_goes_on_from_what_was_left_of_one"),
    (LosesText, "a_text_is_the_same_plain_and_streamed"),
    (LosesDeltas, "a_text_is_the_same_plain_and_streamed"),
    (SaysNothing, "a_text_is_the_same_plain_and_streamed"),
    (EndsTwice, "a_text_is_the_same_plain_and_streamed"),
    (CountsNothing, "the_end_of_an_answer_is_told"),
    (ForgetsWhoAnswered, "the_end_of_an_answer_is_told"),
    (KnowsNoReason, "the_end_of_an_answer_is_told"),
    (KnowsNoReason, "calls_are_the_same_plain_and_streamed"),
    (SharesOneId, "calls_are_the_same_plain_and_streamed"),
    (GivesAllAtOnce, "deltas_are_given_out_as_they_come"),
    (CountsRequests, "equal_requests_are_equal_bytes"),
    (CountsRequests, "a_longer_conversation_begins_the_same"),
    (TrustsHistories, "every_text_is_sent"),
    (ForgetsSettings, "settings_are_sent_or_refused"),
    (TellsEverything, "what_is_golems_own_stays_here"),
    (NeverRetries, "a_refusal_says_whether_to_try_again"),
    (NeverRetries, "a_plain_answer_cut_anywhere_is_an_error"),
    (AlwaysRetries, "a_refusal_says_whether_to_try_again"),
    (AlwaysRetries, "a_wrong_key_is_refused_and_never_shown"),
    (AlwaysRetries, "redirects_are_not_followed"),
    (DoesNotWait, "a_refusal_says_how_long_to_wait"),
    (LosesWhatCame, "a_stream_cut_anywhere_is_whole_or_an_error"),
    (LosesWhatCame, "an_error_inside_a_stream_is_typed"),
    (ShowsTheKey, "a_refusal_says_whether_to_try_again"),
    (WrongKind, "what_is_no_answer_is_an_error"),
    (WrongKind, "an_error_inside_a_stream_is_typed"),
    (TakesHalves, "a_stream_cut_anywhere_is_whole_or_an_error"),
    (FollowsRedirects, "redirects_are_not_followed"),
    (LeavesStreams, "leaving_closes_the_connection"),
]


@pytest.mark.parametrize(("faulty", "name"), FAULTS)
async def test_a_fault_fails_the_check_for_it(faulty: Any, name: str) -> None:
    subject = faulty if isinstance(faulty, Subject) else Subject(faulty, ChatJudge)
    with pytest.raises(AssertionError):
        await BY_NAME[name](subject)


def test_every_check_has_a_fault_that_it_finds() -> None:
    assert {name for _, name in FAULTS} == set(BY_NAME)


async def test_an_adapter_without_fault_conforms() -> None:
    subject = Subject(Faulty, ChatJudge, frozenset({"thinking"}))
    await conforms(subject)


async def test_one_error_names_every_check_that_failed() -> None:
    with pytest.raises(AssertionError) as caught:
        await conforms(Subject(CountsNothing, ChatJudge))
    first, *rest = str(caught.value).splitlines()
    assert first.endswith(f"of {len(CHECKS)} checks failed")
    assert any(line.startswith("the_end_of_an_answer_is_told: ") for line in rest)
