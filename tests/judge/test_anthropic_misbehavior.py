"""What the adapters of Anthropic and Bedrock make of a server that does wrong.

What holds for more of them is in `tests.judge.test_misbehavior`, `tests.judge.test_runs` and
`tests.judge.test_bounds`.
"""

from __future__ import annotations

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage
from golem.testing.judge import Misbehavior, misbehave
from tests.judge.support import ANSWER, API, APIS, CLAUDES, TEXT, both_ways, failure, over, read


@over(*CLAUDES)
@both_ways
@pytest.mark.parametrize(
    ("wrong", "status", "codes", "retryable", "wait"),
    [
        (misbehave.rate_limited("7"), 429, ("rate_limit_exceeded",) * 2, True, 7.0),
        (misbehave.rate_limited("3600"), 429, ("rate_limit_exceeded",) * 2, False, 3600.0),
        (misbehave.rate_limited(), 429, ("rate_limit_exceeded",) * 2, True, None),
        (
            misbehave.out_of_quota("enforced_spend_limit_reached"),
            429,
            ("enforced_spend_limit_reached",) * 2,
            True,
            None,
        ),
        (misbehave.status(400), 400, ("invalid_request_error", "ValidationException"), False, None),
        (misbehave.status(403), 403, ("permission_error", "AccessDeniedException"), False, None),
        (misbehave.status(404), 404, ("not_found_error", "ResourceNotFoundException"), False, None),
        (misbehave.status(500), 500, ("api_error", "InternalServerException"), True, None),
        (misbehave.status(529), 529, ("overloaded_error", "InternalServerException"), True, None),
        (misbehave.html_page(), 502, (None, None), True, None),
    ],
)
async def test_a_refusal_tells_whether_and_when_to_try_again(
    api: API,
    wrong: Misbehavior,
    status: int,
    codes: tuple[str | None, ...],
    retryable: bool,
    wait: float | None,
    stream: bool,
) -> None:
    async with api.judge(wrong) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
    assert isinstance(error, APIError)
    code = codes[CLAUDES.index(api.name)]
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert error.retry_after == wait
    assert error.message
    assert "<" not in error.message
    assert error.partial is None


@over(*CLAUDES)
@both_ways
@pytest.mark.parametrize("key", ["", "sk-wrong-0123456789"])
async def test_a_wrong_key_is_the_providers_refusal(api: API, key: str, stream: bool) -> None:
    async with api.judge(None) as judge:
        model = api.model(judge, api_key=key)
        error = await failure(model, judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (401 if api.name == "anthropic" else 403, False)
    assert "key" in error.message.lower() or "Authentication" in error.message


async def test_a_stream_without_its_end_is_a_transport_error() -> None:
    """A count that never came is none on Bedrock, whose gateways may lack it."""
    for name, count in (("anthropic", 1), ("bedrock", 2)):
        api = APIS[name]
        async with api.judge(misbehave.without_end(count)) as judge:
            error = await failure(api.model(judge), judge, stream=True)
        assert isinstance(error, TransportError)
        assert error.partial is not None
        assert error.partial.content == TEXT
    async with APIS["bedrock"].judge(misbehave.without_end(1)) as judge:
        assert (await read(APIS["bedrock"].model(judge))).message == ANSWER


@pytest.mark.parametrize(
    ("name", "given", "code", "status"),
    [
        ("anthropic", None, "overloaded_error", 529),
        ("anthropic", "api_error", "api_error", 500),
        ("bedrock", None, "InternalServerException", 500),
        ("bedrock", "throttlingException", "ThrottlingException", 429),
        ("bedrock", "modelStreamErrorException", "ModelStreamErrorException", 424),
    ],
)
async def test_an_error_in_the_middle_of_a_stream_keeps_what_had_come(
    name: str, given: str | None, code: str, status: int
) -> None:
    wrong = misbehave.error_event(6, "Overloaded, sorry.", code=given)
    async with APIS[name].judge(wrong) as judge:
        error = await failure(APIS[name].model(judge), judge, stream=True)
    assert isinstance(error, APIError)
    assert (error.message, error.code, error.status) == ("Overloaded, sorry.", code, status)
    assert error.retryable
    assert error.partial is not None
    assert error.partial.content
    assert TEXT.startswith(error.partial.content)


async def test_a_frame_that_is_damaged_is_a_protocol_error() -> None:
    api = APIS["bedrock"]
    async with api.judge(misbehave.replaced(b"three", b"thrEe")) as judge:
        error = await failure(api.model(judge), judge, stream=True)
    assert isinstance(error, ProtocolError)
    assert error.partial == AssistantMessage("One two")
