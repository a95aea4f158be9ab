"""What the adapters of Anthropic and Bedrock make of a server that does wrong.

The tests that ask nothing of one API alone are those of `tests.judge.test_misbehavior`,
`tests.judge.test_runs` and `tests.judge.test_bounds`, over these two.
"""

from __future__ import annotations

from typing import Any

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage
from golem.testing.judge import Misbehavior, misbehave
from tests.judge import test_bounds as bounds
from tests.judge import test_misbehavior as wrongs
from tests.judge import test_runs as runs
from tests.judge.anthropic_apis import APIS
from tests.judge.support import ANSWER, API, ASK, TEXT, both_ways, failure, read
from tests.judge.test_bounds import small_bounds as small_bounds

BOTH = sorted(APIS)

test_a_kept_connection_is_used_again = wrongs.test_a_kept_connection_is_used_again
test_a_date_to_try_again_at = wrongs.test_a_date_to_try_again_at_is_a_number_of_seconds
test_an_error_that_quotes_the_key_is_blanked = wrongs.test_an_error_that_quotes_the_key_is_blanked
test_the_key_never_arrives_at_another_host = wrongs.test_the_key_never_arrives_at_another_host
test_a_stream_cut_anywhere = (
    wrongs.test_a_stream_cut_anywhere_is_whole_or_an_error_with_what_had_come
)
test_a_plain_answer_cut_anywhere = wrongs.test_a_plain_answer_cut_anywhere_is_a_transport_error
test_a_page_of_status_200_is_a_protocol_error = wrongs.test_a_page_of_status_200_is_a_protocol_error
test_no_body_at_all_is_an_error = wrongs.test_no_body_at_all_is_an_error
test_an_error_in_a_plain_answer = wrongs.test_an_error_in_a_plain_answer_of_status_200_is_an_error
test_bytes_that_are_no_utf8 = wrongs.test_bytes_that_are_no_utf8_never_pass_for_an_answer
test_a_kept_connection_that_dies = (
    wrongs.test_a_kept_connection_that_dies_under_a_request_is_replaced
)
test_a_kept_connection_that_dies_in_the_middle = (
    wrongs.test_a_kept_connection_that_dies_in_the_middle_of_a_body_is_replaced
)
test_a_new_connection_that_dies = (
    wrongs.test_a_new_connection_that_dies_under_a_request_is_a_transport_error
)
test_a_server_that_stops_reading_is_given_up = wrongs.test_a_server_that_stops_reading_is_given_up
test_a_silent_server_is_given_up = wrongs.test_a_silent_server_is_given_up
test_cancelling_closes_the_connection = wrongs.test_cancelling_closes_the_connection
test_leaving_a_stream_closes_the_connection = wrongs.test_leaving_a_stream_closes_the_connection

test_a_server_that_fails_twice = runs.test_a_server_that_fails_twice_is_asked_a_third_time
test_what_a_dying_stream_had_said = (
    runs.test_what_a_dying_stream_had_said_is_evidence_and_is_not_asked_for_again
)
test_a_half_received_call = runs.test_a_half_received_call_is_evidence_and_is_never_executed

test_a_reader_may_leave_an_endless_stream = bounds.test_a_reader_may_leave_an_endless_stream


@pytest.fixture(params=BOTH)
def api(request: pytest.FixtureRequest) -> API:
    """One of the two after the other."""
    return APIS[request.param]


@both_ways
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (name, wrong)
        for name in BOTH
        for wrong in wrongs.HARMLESS
        if (name, wrong) != ("bedrock", "carriage returns")  # frames are no lines
    ],
)
async def test_an_odd_but_whole_answer_is_taken(name: str, wrong: str, stream: bool) -> None:
    await wrongs.test_an_odd_but_whole_answer_is_taken(APIS[name], wrong, stream)


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
    code = codes[BOTH.index(api.name)]
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert error.retry_after == wait
    assert error.message
    assert "<" not in error.message
    assert error.partial is None


@both_ways
@pytest.mark.parametrize(
    ("wrong", "kind", "times"),
    [
        (misbehave.status(503), APIError, 3),
        (misbehave.status(400), APIError, 1),
        (misbehave.quotes_the_key(), APIError, 1),
        (misbehave.redirects(), APIError, 1),
        (misbehave.html_page(200), ProtocolError, 1),
        (misbehave.cut_at(0), TransportError, 3),
        (misbehave.drops_request(50), TransportError, 4),
    ],
)
async def test_a_run_keeps_what_it_had_when_a_later_request_fails_for_good(
    api: API, wrong: Misbehavior, kind: type[Exception], times: int, stream: bool
) -> None:
    await runs.test_a_run_keeps_what_it_had_when_a_later_request_fails_for_good(
        api, wrong, kind, times, stream
    )


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


async def test_text_with_bytes_that_are_no_utf8_is_read_as_replacements() -> None:
    await wrongs.test_text_with_bytes_that_are_no_utf8_is_read_as_replacements(APIS["anthropic"])


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("what", bounds.TOO_MUCH)
@both_ways
async def test_too_much_of_anything_is_an_error_and_not_kept(
    api: API, what: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what had come a block is put together, and read, as JSON too."""
    monkeypatch.setattr(bounds, "ALLOWED", 6 * bounds.BOUND)
    await bounds.test_too_much_of_anything_is_an_error_and_not_kept(api, what, stream)


@pytest.mark.usefixtures("small_bounds")
async def test_what_came_before_too_much_is_kept() -> None:
    await bounds.test_what_came_before_too_much_is_kept(APIS["anthropic"])


async def test_ten_megabytes_in_one_event_are_text_like_any_other(api: API) -> None:
    size = 10_000_000
    wrong: Any = misbehave.huge_event(size, after=4)
    async with api.judge(wrong, TEXT) as judge:
        with bounds.Peak() as peak:
            answer = await read(api.model(judge), ASK)
    assert peak.bytes < 8 * size
    assert len(answer.message.content) == len(TEXT) + size
