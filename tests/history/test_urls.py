"""What a URL in a history would make its reader fetch: its scheme and its host, in one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.history import urls
from tests.history.fetching import passes

# Schemes

SCHEMES = {
    "http://x": "http",
    "HTTPS://x/y": "https",
    "HtTp://x": "http",
    "https:x": "https",
    "https:": "https",
    "https:%zz": "https",
    "https:/a:b/c": "https",
    "https://x#@y^/": "https",
    "https:///x": "https",
    "http:////x": "http",
    "https://x/y ": "https",
    "https://user:p%40w@x/": "https",
    "https://a@b@x/": "https",
    "https://x:80/": "https",
    "https://x:/": "https",
    "https://x:99999/": "https",
    "https://[::1]:8080/": "https",
    "https://[fe80::1%25eth0]/": "https",
    "https://b\u00fccher.example/": "https",
    "https://b%C3%BCcher.example/": "https",
    "https://x/%41?%zz": "https",
    "https://x?a=b c".replace(" ", "+"): "https",
    "file:///etc/passwd": "file",
    "FILE:///etc/passwd": "file",
    "javascript:alert(1)": "javascript",
    "data:image/png;base64,AAAA": "data",
    "blob:https://x/uuid": "blob",
    "view-source:https://x/": "view-source",
    "url:https://x/": "url",
    "jar:https://x!/y": "jar",
    "a1+.-:x": "a1+.-",
    "C:\\Windows\\win.ini": "c",
    "gs://b/o": "gs",
    "s3://b/o": "s3",
}

UNPARSABLE = [
    *("", " ", "/etc/passwd", "//host/x", "///x", "images/a.png", "#fragment", "?query", "."),
    *(" https://x/", "\thttps://x/", "\u00a0https://x/", "\ufeffhttps://x/", "\u3000https://x/"),
    *(
        "ht tp://x/",
        "https ://x/",
        "https://x/a b",
        "https://x y/",
        "https://x /",
        "https://x ",
        "https://x/ X",
    ),
    *("https://x/\n", "https://x/\x7f", "ht\ntps://x/", "https:/\t/x/", "https://x/\x00", "\x00"),
    *(
        "https://x/%zz",
        "https://x/%4",
        "https://x/%",
        "https://x/#%zz",
        "https://x/?a#%zz",
        "https://%zz@x/",
    ),
    *("https://x:abc/", "https://x:-1/", "https://x:80:90/", "https://[::1]:x/", "https://[::1]x/"),
    *("https://[::1/", "https://::1]/", "https://[x]/", "https://[fe80::1%eth0]/", "https://[]/"),
    *("://x/", ":x", "1http://x", "-a:x", "+http://x/", ".a:x", "\uff48ttp://x/", "ht%74p://x/"),
    *("https://ex%41mple/", "https://x%2f/", "https://x\\y/", "https://x^y/", "https://u\u00e9@x/"),
    *("<https://x/>", "<URL:https://x/>", "https%3A//x/", "hxxp//x", "\u0261https//x"),
]


@pytest.mark.parametrize(("url", "scheme"), SCHEMES.items())
def test_the_scheme_is_named_lower_cased(url: str, scheme: str) -> None:
    assert scheme == urls.scheme(url)
    assert passes(url) == (scheme in {"http", "https"})


@pytest.mark.parametrize("url", UNPARSABLE)
def test_what_no_reader_can_parse_has_no_scheme(url: str) -> None:
    assert urls.scheme(url) == ""
    if url:  # without a URL a part is inline
        assert not passes(url)


@given(st.text(max_size=30), st.sampled_from(["", "//", "///"]))
def test_only_what_spells_http_passes(rest: str, slashes: str) -> None:
    """Whatever surrounds it: what passes begins with the scheme itself."""
    for url in (rest, rest + ":" + slashes, "file:" + slashes + rest, rest + "http://x"):
        if url and passes(url):
            assert url[:6].lower().startswith(("http:", "https:"))


@pytest.mark.parametrize(
    "url",
    [
        "http://" + "\u00e9" * 60 + "^@x/",
        "http://" + "%41" * 5000 + "^@x/",
        "http://" + "a:" * 5000 + "@@^@x/",
        "http://" + "[" * 10_000,
        "http://[" + "%25" * 5000,
        "http://" + "\u00e9" * 100_000 + ".example/",
        "http://" + "a." * 50_000 + "example/",
        "http://" + "9" * 100_000 + "/",
        "http://1." + "9" * 200 + "/",
        "http:" + "%41" * 30_000 + "%",
        "a" * 100_000,
    ],
    ids=range(11),
)
def test_a_hostile_url_is_judged_in_linear_time(url: str) -> None:
    """An expression with two ways to match the same text would not come back at all."""
    urls.scheme(url)
    assert urls.is_private(urls.host(url))
    assert not passes(url, block_private_hosts=True)


# Hosts

HOSTS = {
    "https://Example.COM/x": "example.com",
    "https://example.com.": "example.com",
    "https://example.comX": "example.comx",
    "https://example.com.:443/": "example.com",
    "https://example.com?x@y/": "example.com",
    "https://example.com#@y/": "example.com",
    "https://user:password@example.com/": "example.com",
    "https://127.0.0.1@example.com/": "example.com",
    "https://a_b.example.com/ ": "a_b.example.com",
    "https://b\u00fccher.example/": "xn--bcher-kva.example",
    "https://xn--bcher-kva.example/": "xn--bcher-kva.example",
    "https://B\u00dcCHER.example/": "xn--bcher-kva.example",
    "https://\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45\u3002com/": "example.com",
    "https://exam\u00adple.com/": "example.com",
    "https://exam\u200bple.com/": "example.com",
    "https://[2606:4700::1111]:80/": "2606:4700::1111",
    "https://[2606:4700:0:0:0:0:0:1111]/": "2606:4700::1111",
    "https://[FE80::1%25eth0]/": "fe80::1",
    "https://0x7F.1/": "0x7f.1",
    "https://" + "a" * 63 + ".example/": "a" * 63 + ".example",
}

UNDECIDABLE = [
    *("https:example.com", "https:/example.com", "https:///example.com", "https:", "https://"),
    *("https:\\\\example.com", "https:/\\example.com", "https://example.com\\@127.0.0.1/"),
    *("https://a@b@example.com/", "https://example.com\\.a.example/", "https://@/", "https://:80/"),
    *("https://example..com/", "https://.example.com/", "https://example.com../", "https://../"),
    *("https://fa\u00df.example/", "https://\u03b2\u03cc\u03bb\u03bf\u03c2.example/"),
    *("https://exam\u200dple.com/", "https://exam\u200cple.com/", "https://exam\u2064ple.com/"),
    *("https://evil.example\uff0f.example.com/", "https://evil.example\uff1f.example.com/"),
    *("https://evil.example\uff03.example.com/", "https://a\uff20evil.example/"),
    *("https://ev\u2100l.example/", "https://example.com\uff1a80/", "https://127.0.0.1\u3000/"),
    *("https://l\u1d52calhost.example/", "https://\U0001fbf127.example/"),
    *("https://exam\U000e0100ple.com/", "https://exam\ufe0fple\U000e0101.com/"),
    *("https://xn--localhost-.example/", "https://xn--.example/", "https://xn--\u00e9.example/"),
    *("https://b%C3%BCcher.example/", "https://a%25b.example/", "https://exa!mple.com/"),
    *(
        "https://a;b.example/",
        "https://a,b.example/",
        "https://a&b.example/",
        "https://a=.example/",
    ),
    *("https://" + "a" * 64 + ".example/", "https://" + "a." * 200 + "example/"),
    *("https://[::1]@/", "https://[:::]/", "https://[1::2::3]/"),
]


@pytest.mark.parametrize(("url", "host"), HOSTS.items())
def test_the_host_is_named_in_one_spelling(url: str, host: str) -> None:
    assert host == urls.host(url)


@pytest.mark.parametrize("url", UNDECIDABLE)
def test_a_host_that_readers_may_disagree_about_has_no_name(url: str) -> None:
    """And no policy lets it pass."""
    assert urls.host(url) == ""
    assert not passes(url, block_private_hosts=True)
    assert not passes(url, allowed_hosts=["example.com", ".example.com", ".example"])


@given(st.text(max_size=20))
def test_any_text_has_a_verdict(text: str) -> None:
    for url in (text, "http://" + text, "http://[" + text + "]/", "http://1." + text):
        urls.scheme(url)
        assert urls.is_private(urls.host(url)) in (True, False)
        assert urls.host(url) == "" or urls.normal_host(urls.host(url)) == urls.host(url)


def test_a_scheme_in_capitals_names_its_host_and_a_name_has_a_longest_form() -> None:
    assert urls.host("HTTPS://A.Example/x") == "a.example"
    longest = ".".join(["a" * 63] * 3 + ["b" * 63])
    assert len(longest) == 255
    assert urls.host(f"http://{longest}/") == longest
    assert urls.host(f"http://{longest}.c/") == ""
