"""What other readers make of a URL: none finds another scheme or host than was judged."""

from __future__ import annotations

import functools
import importlib
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.history import urls
from tests.history.fetching import passes


@given(st.text(st.sampled_from("hHtTpPsSfile:/\\@ \t\n\x00%27.#?\u0131\u017f"), max_size=14))
def test_no_reader_takes_what_passes_for_another_scheme(url: str) -> None:
    if url and passes(url):
        for read in (urlsplit, _httpx):
            try:
                scheme = read(url).scheme
            except ValueError:
                continue
            assert scheme in {"http", "https"}


def _httpx(url: str) -> httpx.URL:
    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(url) from error


Reader = Callable[[str], str | None]


def _readers() -> dict[str, Reader]:
    """URL parsers a provider may use; those that are not installed here are left out."""
    found: dict[str, Reader] = {
        "urllib": lambda url: urlsplit(url).hostname,
        "httpx": lambda url: _httpx(url).raw_host.decode(),
    }
    others: dict[str, Callable[[Any], Reader]] = {
        "ada_url": lambda ada: lambda url: ada.URL(url).hostname,
        "yarl": lambda yarl: lambda url: yarl.URL(url).raw_host,
        "urllib3.util": lambda urllib3: lambda url: urllib3.parse_url(url).host,
    }
    for name, make in others.items():
        try:
            found[name] = make(importlib.import_module(name))
        except ImportError:
            continue
    return found


PIECES = [
    *("127.0.0.1", "localhost", "169.254.169.254", "[::1]", "2130706433", "0x7f.1", "0177.1"),
    *("example.com", "8.8.8.8", "EXAMPLE.org", "b\u00fccher.example", "xn--bcher-kva.example"),
    *("@", "#@", "?@", "\\@", "/@", "%40", "%2f", "%5c", "\\", "/", "//", ";", "&", "#", "?", "."),
    *(":80", "::80", ":", "%00", "%20", " ", "\u3002", "\uff0e", "\u2024", "\u00ad", "\u200b"),
    *("\u2064", "\ufe0f", "\U000e0100", "\uff0f", "\uff20", "\uff1f", "\uff03", "\uff1a", "\u2100"),
    *("\u2460", "\uff11", "\u24db", "\u1d52", "xn--", "xn--localhost-", "-", "_", "~", "[", "]"),
    *("$", "!", '"', "<", "{", "|", "^", "`", "'", "(", "*", "+", ",", "=", "\u00a0", "\u3000"),
    *("\ufeff", "\u00df", "\u03c2", "\u200d", "\u0130", "\u212a", "\u017f", "%25", "@@"),
]
OPENINGS = ["http://", "https://", "http:/", "http:", "http:///", "http:\\\\", "http://u:p@"]


def _normal(host: str) -> str:
    """A reader's host in our spelling, an address as the number it is."""
    name = urls.normal_host(host.strip("[]").partition("%")[0]) or host.rstrip(".").lower()
    found = urls.addresses(name)
    return str(found[0]) if found else name


@functools.cache
def _judged_public() -> list[str]:
    """Odd URLs that the policy lets pass, the same on every machine."""
    chance = random.Random(3)
    made = [
        chance.choice(OPENINGS) + "".join(chance.choices(PIECES, k=chance.randint(1, 4)))
        for _ in range(8_000)
    ]
    young = [0x1D52, 0x2064, 0x1FBF1, 0x1F130, 0xE0100, 0x180F, 0xA7F2, 0x1D7CF]
    letters = [chr(code) for code in [*range(0x80, 0x3000, 11), 0xFF0F, 0xFF41, *young]]
    made += [f"http://l{letter}calhost.example/" for letter in letters]
    made += [f"http://{letter}27.0.0.1/" for letter in letters]
    return [url for url in made if passes(url, block_private_hosts=True)]


def _must_agree(url: str, reader: str, host: str | None) -> None:
    if host:
        assert _normal(urls.host(url)) == _normal(host), f"{reader} reads {url!a} as {host!a}"
        assert not urls.is_private(_normal(host))


@pytest.mark.parametrize("reader", _readers())
def test_every_reader_finds_the_host_that_was_judged(reader: str) -> None:
    """What passes the policy is the same public host for other parsers, or is refused by them."""
    read = _readers()[reader]
    agreed = 0
    for url in _judged_public():
        try:
            host = read(url)
        except Exception:
            continue  # it refuses the URL
        _must_agree(url, reader, host)
        agreed += 1
    assert agreed > 100


NODE = """
const urls = JSON.parse(require("fs").readFileSync(0, "utf8"));
const read = (url) => { try { return new URL(url).hostname } catch { return null } };
console.log(JSON.stringify(urls.map(read)));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_a_browsers_parser_finds_the_host_that_was_judged() -> None:
    """The WHATWG's rules, as JavaScript's ``new URL`` has them."""
    kept = _judged_public()
    node = subprocess.run(
        [str(shutil.which("node")), "-e", NODE],
        input=json.dumps(kept),
        capture_output=True,
        text=True,
        check=True,
    )
    hosts = json.loads(node.stdout)
    assert sum(host is not None for host in hosts) > 100
    for url, host in zip(kept, hosts, strict=True):
        _must_agree(url, "node", host)
