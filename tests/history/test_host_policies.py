"""Policies about hosts: no spelling of a private one passes, and of allowed ones only those."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.history import sanitize_history, urls
from tests.history.fetching import passes

# Private hosts, written down

PRIVATE = [
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.0.0.1", "0x7f.1"),
    *("0177.0.0.1", "0177.1", "017700000001", "0x7f.0.0x0.1", "00000177.0.0.1", "127.0.0.1."),
    *("127.255.255.254", "0", "0.0.0.0", "0x", "0x0", "00", "0.1.2.3"),
    *("10.0.0.1", "010.0.0.1", "012.0.0.1", "167772161", "0xa.1", "10.1", "10.0.256"),
    *("172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.257", "0300.0250.0.1", "3232235521"),
    *("169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518"),
    *("169.16689662", "0xa9.254.0251.254"),
    *("100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.0.8", "168.63.129.16", "2822734096"),
    *("192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "192.88.99.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "4294967295"),
    *("256.0.0.1", "1.2.3.256", "1.2.65536", "1.16777216", "4294967296", "1.2.3.4.5", "08.8.8.8"),
    *("8.8.8.8.0", "0310.1.1.1"),
    *("-1.0.0.1", "1.-1.1", "+1.1.1.1", "1_0.0.0.1", "a.1", "1..1", "example.0x1"),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[fe80::1]", "[FE80::1%25eth0]"),
    *("[febf::1]", "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[fd20:ce::254]", "[ff02::1]"),
    *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]", "[::FFFF:10.0.0.1]"),
    *("[::127.0.0.1]", "[::7f00:1]", "[::8.8.8.8]", "[::ffff:0:127.0.0.1]", "[::ffff:0:a00:1]"),
    *("[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]", "[100::1]"),
    *("[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2002:a00:1::]", "[2001::1]", "[2001:db8::1]"),
    *("[2001:0:7f00:1::1]", "[2001:10::1]", "[3fff::1]", "[5f00::1]", "[4000::1]", "[1::1]"),
    *("localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain"),
    *(
        "localhost6.localdomain6",
        "localhost4.localdomain4",
        "printer.local",
        "metadata",
        "metadata.google.internal",
    ),
    *("METADATA.Google.Internal.", "instance-data", "instance-data.ec2.internal", "ip6-localhost"),
    *("host.docker.internal", "kubernetes", "redis", "router.home.arpa", "nas.lan", "db.corp"),
    *("metadata.goog", "x.metadata.goog", "metadata.tencentyun.com", "api.metadata.cloud.ibm.com"),
    *("kubernetes.default", "kubernetes.default.svc", "app.test", "x.invalid", "wiki.intra"),
    *("192.31.196.1", "192.52.193.1", "192.175.48.1", "[2620:4f:8000::1]"),
    *("[2a00:1450::5efe:127.0.0.1]", "[2a00:1450::200:5efe:a00:1]", "[fe80::5efe:8.8.8.8]"),
    *("x.home", "x.intranet", "x.private", "kubernetes.default.svc.cluster.local"),
    *("\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "127\uff0e1", "127\uff610.0.1"),
    *("\u2460\u2461\u2466.0.0.1", "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3"),
    *(
        "local\u00adhost",
        "local\u200bhost",
        "\u2060localhost",
        "local\ufeffhost",
        "local\ufe0fhost",
    ),
    *(
        "\u212aubernetes",
        "lo\u217daldomain",
        "\U0001d7cf27.0.0.1",
        "l\u1d52calhost",
        "\u02e1ocalhost",
    ),
    *(
        "\U0001fbf1.1",
        "\U0001f130calhost",
        "local\u2064host",
        "local\U000e0100host",
        "127\u20240.0.1",
    ),
]


@pytest.mark.parametrize("host", PRIVATE)
def test_a_private_host_is_refused_in_every_spelling(host: str) -> None:
    for url in (
        f"http://{host}",
        f"HTTPS://{host}:8080/latest/meta-data?x=https://example.com#y",
        f"http://example.com@{host}/",
        f"http://example.com:80@{host}#@example.com/",
        f"http://{host} ",
    ):
        assert urls.is_private(urls.host(url))
        assert not passes(url, block_private_hosts=True)


PUBLIC = [
    *("example.com", "img.example", "a.b.c.example.org", "EXAMPLE.com.", "127.0.0.1.example.com"),
    *(
        "8.8.8.8",
        "134744072",
        "0x8.8.8.8",
        "8.8.2056",
        "1.1",
        "172.15.0.1",
        "172.32.0.1",
    ),
    *("192.167.1.1", "169.253.0.1", "100.63.0.1", "100.128.0.1", "11.0.0.1", "128.0.0.1"),
    *("223.255.255.255", "168.63.129.17", "192.0.1.1", "126.255.255.255", "9.255.255.255"),
    *("[2606:4700::1111]", "[2a00:1450::1]", "[64:ff9b::8.8.8.8]", "[::ffff:8.8.8.8]"),
    *("[2002:808:808::1]", "[2400::1%25x]", "localhost.example.com", "local.example", "xlocal.com"),
    *("[2a00:1450::5efe:8.8.8.8]", "[2a00:1450::100:5efe:a00:1]", "[2620:4f:8001::1]"),
    *("xmetadata.goog", "test.example", "default.example", "svc.example"),
    *("internal.example", "home.example", "b\u00fccher.example", "lan.com", "notlocalhost.org"),
]


@pytest.mark.parametrize("host", PUBLIC)
def test_a_public_host_passes(host: str) -> None:
    for url in (f"https://{host}/a.png", f"http://user:pw@{host}:8080?x#y"):
        assert passes(url, block_private_hosts=True)


def test_a_private_host_passes_where_no_policy_asks() -> None:
    """Sanitizing by itself judges schemes (contract §2.3)."""
    assert passes("http://169.254.169.254/latest/meta-data")
    assert passes("http://localhost/")
    assert passes("https:x")


# Addresses

ADDRESSES = {
    "1.2.3.4": ["1.2.3.4"],
    "1.2.772": ["1.2.3.4"],
    "16909060": ["1.2.3.4"],
    "0x1.0x2.0x304": ["1.2.3.4"],
    "010.1": ["8.0.0.1", "10.0.0.1"],
    "0xff.0xffffff": ["255.255.255.255"],
    "::1": ["::1"],
}


@pytest.mark.parametrize(("name", "found"), ADDRESSES.items())
def test_an_address_is_read_as_octal_and_as_decimal(name: str, found: list[str]) -> None:
    read = urls.addresses(name)
    assert read is not None
    assert found == list(dict.fromkeys(map(str, read)))


def test_what_only_looks_like_an_address_has_none() -> None:
    for name in ("::x", "1:2", "1.2.3.4.5", "256.1.1.1", "08.1", "a.1", "0310.1.1.1"):
        assert urls.addresses(name) == []
    for name in ("example.com", "1.2.3.4.example", "", "x", "0x1g"):
        assert urls.addresses(name) is None


@pytest.mark.parametrize(
    ("name", "private"),
    [
        ("64:ff9b::168.63.129.16", True),
        ("64:ff9b::168.63.129.17", False),
        ("2606:4700::5efe:168.63.129.16", True),
        ("2606:4700::5efe:168.63.129.17", False),
    ],
)
def test_an_embedded_address_counts_to_its_last_bit(name: str, private: bool) -> None:
    assert urls.is_private(name) == private


# Spellings made up by Hypothesis

PRIVATE_V4 = st.one_of(
    st.integers(0, 255).map(lambda n: f"127.0.{n}.1"),
    st.integers(0, 255).map(lambda n: f"10.{n}.0.1"),
    st.integers(16, 31).map(lambda n: f"172.{n}.3.4"),
    st.integers(0, 255).map(lambda n: f"192.168.{n}.9"),
    st.sampled_from(["169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16"]),
).map(ipaddress.IPv4Address)

FULL_WIDTH = {ord(char): 0xFEE0 + ord(char) for char in "0123456789abcdefx"}


@st.composite
def spellings(draw: st.DrawFn, address: ipaddress.IPv4Address) -> str:
    """An IPv4 address as inet_aton and the browsers' rules read it, letters disguised."""
    count = draw(st.integers(1, 4))
    octets = list(address.packed)
    numbers = [*octets[: count - 1], int.from_bytes(address.packed[count - 1 :], "big")]
    forms = [str, hex, lambda n: f"0{n:o}" if n else "0", lambda n: f"0x{n:010X}"]
    text = ".".join(draw(st.sampled_from(forms))(number) for number in numbers)
    return draw(disguises(text))


@st.composite
def disguises(draw: st.DrawFn, text: str) -> str:
    """The same host for every reader that maps names as IDNA does."""
    if draw(st.booleans()):
        text = text.translate(FULL_WIDTH)
    dot = draw(st.sampled_from([".", ".", "\u3002", "\uff0e", "\uff61"]))
    text = text.replace(".", dot)
    if draw(st.booleans()):
        place = draw(st.integers(0, len(text)))
        invisible = draw(st.sampled_from(["\u00ad", "\u200b", "\u2060", "\ufeff", "\ufe0f"]))
        text = text[:place] + invisible + text[place:]
    return text + draw(st.sampled_from(["", "", "."]))


@st.composite
def wrapped(draw: st.DrawFn, host: str) -> str:
    """A URL of this host."""
    before = draw(st.sampled_from(["", "u@", "u:p@", "example.com@", "example.com:80@", "%41@"]))
    after = draw(st.sampled_from(["", "/", ":80", ":/x", "?@example.com", "#@example.com/", " "]))
    return draw(st.sampled_from(["http://", "https://", "HTTP://"])) + before + host + after


@given(st.data())
def test_no_spelling_of_a_private_address_passes(data: st.DataObject) -> None:
    address = data.draw(PRIVATE_V4)
    url = data.draw(wrapped(data.draw(spellings(address))))
    assert not passes(url, block_private_hosts=True)


@given(PRIVATE_V4, st.data())
def test_no_ipv6_address_that_embeds_a_private_one_passes(
    address: ipaddress.IPv4Address, data: st.DataObject
) -> None:
    low = int(address)
    value = data.draw(
        st.sampled_from(
            [
                low,  # IPv4-compatible
                0xFFFF << 32 | low,  # mapped
                0xFFFF << 48 | low,  # translated
                0x64FF9B << 96 | low,  # NAT64
                0x64FF9B0001 << 80 | low,  # locally synthesized
                0x2002 << 112 | low << 80,  # 6to4
                0x20010000 << 96 | low ^ 0xFFFFFFFF,  # Teredo
                0x2A001450 << 96 | 0x5EFE << 32 | low,  # ISATAP
                0x2A001450 << 96 | 0x2005EFE << 32 | low,
            ]
        )
    )
    embedded = ipaddress.IPv6Address(value)
    text = data.draw(st.sampled_from([str(embedded), embedded.exploded, str(embedded).upper()]))
    zone = data.draw(st.sampled_from(["", "%25eth0", "%251"]))
    assert not passes(data.draw(wrapped(f"[{text}{zone}]")), block_private_hosts=True)


@given(st.sampled_from(["localhost", "a.localhost", "metadata.google.internal"]), st.data())
def test_no_spelling_of_a_local_name_passes(name: str, data: st.DataObject) -> None:
    host = data.draw(disguises(data.draw(st.sampled_from([name, name.upper(), name.title()]))))
    assert not passes(data.draw(wrapped(host)), block_private_hosts=True)


# Allowed hosts

ALLOWED = {
    ("example.com", "https://example.com/"): True,
    ("example.com", "https://EXAMPLE.com.:80/"): True,
    ("example.com", "https://a.example.com/"): False,
    ("example.com", "https://example.com.evil.example/"): False,
    ("example.com", "https://evilexample.com/"): False,
    (".example.com", "https://a.b.example.com/"): True,
    (".example.com", "https://example.com/"): False,
    (".example.com", "https://evilexample.com/"): False,
    ("Example.COM.", "https://example.com/"): True,
    ("b\u00fccher.example", "https://xn--bcher-kva.example/"): True,
    ("xn--bcher-kva.example", "https://b\u00fccher.example/"): True,
    ("2606:4700:0::1111", "https://[2606:4700::1111]/"): True,
    ("127.0.0.1", "http://127.0.0.1/"): True,
    ("127.0.0.1", "http://2130706433/"): False,
    ("example.com", "https://example.com@evil.example/"): False,
    ("example.com", "https://evil.example#@example.com/"): False,
    ("example.com", "https://evil.example\\@example.com/"): False,
    ("example.com", "https:example.com"): False,
    ("example.com", "ftp://example.com/"): False,
}


@pytest.mark.parametrize(("entry", "url"), ALLOWED)
def test_only_allowed_hosts_pass(entry: str, url: str) -> None:
    assert ALLOWED[entry, url] == passes(url, allowed_hosts=[entry])
    assert ALLOWED[entry, url] == passes(url, allowed_hosts=iter(["x.example", entry]))


def test_one_allowed_host_may_be_given_as_text() -> None:
    """A string is an iterable of strings too, and its letters are no hosts."""
    assert passes("https://example.com/", allowed_hosts="example.com")
    assert not passes("https://e/", allowed_hosts="example.com")


def test_no_host_is_allowed_by_an_empty_list() -> None:
    assert not passes("https://example.com/", allowed_hosts=[])


def test_an_allowed_private_host_is_still_private() -> None:
    """Both policies have to agree."""
    assert not passes("http://10.0.0.1/", allowed_hosts=["10.0.0.1"], block_private_hosts=True)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        ".",
        "..",
        "*.example.com",
        "https://example.com",
        "example.com:80",
        "a b",
        "fa\u00df.de",
        "/",
        "[]",
        "[::1",
        "::1]",
        "[example.com]",
        ".::1",
        ".[::1]",
        "[::1]:80",
    ],
)
def test_an_allowed_host_that_no_url_can_name_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="not a host name"):
        sanitize_history([], allowed_hosts=[entry])


@pytest.mark.parametrize("entry", [5, None, b"example.com", ["example.com"]], ids=repr)
def test_an_allowed_host_that_is_no_text_is_named(entry: Any) -> None:
    with pytest.raises(TypeError, match="allowed_hosts holds host names, not "):
        sanitize_history([], allowed_hosts=["example.com", entry])


@pytest.mark.parametrize("entry", ["2606:4700:0::1111", "[2606:4700::1111]"])
def test_an_address_is_allowed_as_a_url_spells_it_or_without_brackets(entry: str) -> None:
    assert passes("https://[2606:4700::1111]:443/a.png", allowed_hosts=[entry])
    assert not passes("https://[2606:4700::1112]/a.png", allowed_hosts=[entry])
