"""What an exchange that failed is said to be: redirects, and their addresses that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.wire.failures import redirected

KEY = "sk-very-secret-0123456789"
NOWHERE = "the server redirects without a usable address; check base_url"
UNSHOWN = "the server redirects to an address that cannot be shown; check base_url"


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 306, 307, 308])
@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("https://api.example.com/v1", "api.example.com"),
        ("https://user:pw@API.example.com:8443/v1?token=t", "api.example.com"),
        ("http://[::1]:80/", "::1"),
        ("//other.example/v1", "other.example"),
        ("/v2/chat", "another place"),
    ],
)
def test_a_redirect_names_the_host_it_leads_to_and_no_more(
    status: int, location: str, host: str
) -> None:
    error = redirected(location, (), status)
    assert error.message == f"the server redirects to {host}; give its final address as base_url"
    assert (error.status, error.code, error.retryable) == (status, "redirect", False)


@pytest.mark.parametrize(
    "location",
    [
        "http://[::1",
        "http://x:junk/",
        "http://x:99999/",
        "http://x:-1/",
        "mailto:somebody",
        "http://",
        "?",
        "http://a\x07b/",
        "http://a b/",
        "http://\u2100/",
        f"http://{KEY}.example/",
        f"http://{KEY.upper()}/",
        f"http://{'a' * 254}/",
    ],
)
def test_an_address_that_is_none_or_quotes_a_secret_is_not_shown(location: str) -> None:
    error = redirected(location, [KEY], 307)
    assert (error.message, error.retryable) == (UNSHOWN, False)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        *((status, NOWHERE) for status in (301, 302, 303, 307, 308)),
        (None, NOWHERE),
        (304, "the server answered 304 Not Modified, which answers no request; check base_url"),
        (300, "the server answered 300 Multiple Choices, which answers no request; check base_url"),
        (399, "the server answered 399 Unknown, which answers no request; check base_url"),
    ],
)
def test_a_redirect_to_nowhere_says_so(status: int | None, message: str) -> None:
    assert redirected("", (), status).message == message


@given(st.text(max_size=400), st.booleans())
def test_any_location_makes_an_error_without_the_key_and_of_bounded_length(
    text: str, absolute: bool
) -> None:
    error = redirected(f"http://{text}" if absolute else text, [KEY], 308)
    assert KEY not in error.message.lower()
    assert error.message.isprintable()
    assert len(error.message) < 330
