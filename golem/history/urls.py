"""What a URL in a history would make its reader fetch: the scheme, and the host in every spelling.

Nothing is resolved or fetched, and no URL is rewritten. Where readers disagree about a URL, it
counts as the worst any of them makes of it (contract §2.3).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
# No character may match two alternatives: a hostile URL would make the search exponential.
_USERINFO: Final = re.compile(r"(?:[\w.~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})*", re.ASCII)
_HOST: Final = re.compile(
    r"(?:\[[0-9a-fA-F:.]+(?:%25[^\]]+)?\]"
    r"|(?:[^\x00-\x20\[\]\\^`{|}%#?@/:]|%(?:25|[89a-fA-F][0-9a-fA-F]))*)(?::[0-9]*)?"
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

SAFE_SCHEMES: Final = frozenset({"http", "https"})


def scheme(url: str) -> str:
    """The scheme, lower-cased; empty where there is none or the URL cannot be parsed.

    Unparsable: a leading or inner blank, a control character, a ``%`` without two hex digits, a
    bad host or port, nothing before the colon, a first character that is no letter. Relative and
    scheme-relative references have none; a drive letter is one.
    """
    found = _SCHEME.match(url)
    if found is None or _CONTROL.search(url) or " " in url.rstrip(" "):
        return ""
    rest, _, fragment = url[found.end() :].partition("#")
    rest = rest.partition("?")[0]
    if _BAD_ESCAPE.search(fragment):
        return ""
    if not rest.startswith("/"):  # opaque: everything belongs to the scheme
        return found[1].lower()
    if rest.startswith("//"):
        userinfo, _, host = rest[2:].partition("/")[0].rpartition("@")
        if not _HOST.fullmatch(host) or not _USERINFO.fullmatch(userinfo):
            return ""
    return "" if _BAD_ESCAPE.search(rest) else found[1].lower()


_PLAIN_URL: Final = re.compile(
    r"https?://(?:[^/?#@\\]*@)?([^/?#@\\]+)(?:[/?#].*)?", re.IGNORECASE | re.DOTALL
)
_PORT: Final = re.compile(r":[0-9]*\Z")
_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_LONGEST_NAME: Final = 255


def host(url: str) -> str:
    """The host an ``http(s)`` URL names, in one spelling; empty where readers may disagree.

    Lower-cased, internationalized labels as ASCII, without userinfo, port, brackets and trailing
    dot; an IPv4 address in any spelling (decimal, octal, hex, fewer parts) stays as written.
    """
    found = _PLAIN_URL.fullmatch(url.rstrip(" "))
    if found is None:
        return ""
    name = found[1]
    if name.startswith("["):
        return normal_host(name.partition("]")[0][1:].partition("%")[0])
    return normal_host(_PORT.sub("", name))


def normal_host(name: str) -> str:
    """A host name or IPv6 address in the spelling `host` gives; empty when it is neither."""
    if len(name) > _LONGEST_NAME:
        return ""
    if ":" in name:
        return _normal_ipv6(name)
    plain = name.lower() if name.isascii() and "xn--" not in name.lower() else _agreed(name)
    plain = plain.removesuffix(".")
    return plain if _NAME.fullmatch(plain) else ""


def _normal_ipv6(text: str) -> str:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        return ""


def _agreed(name: str) -> str:
    """An internationalized name as ASCII; empty where IDNA 2003 and UTS 46 make two hosts of it.

    The one knows no character that is younger than it, the other none that it forbids: what both
    make the same host of is the same for every reader between them.
    """
    import idna  # its tables are large, and almost no URL needs them

    try:
        old = name.encode("idna").decode().lower()
        return old if old == idna.encode(name, uts46=True).decode() else ""
    except UnicodeError:
        return ""


def is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """Whether a host from `host` is one of `allowed`; ``.example.com`` allows what is below it."""
    return any(
        name == entry or (entry.startswith(".") and name.endswith(entry)) for entry in allowed
    )


_LOCAL_SUFFIXES: Final = (
    *(".localhost", ".localdomain", ".localdomain4", ".localdomain6", ".local", ".home.arpa"),
    *(".internal", ".intranet", ".private", ".corp", ".home", ".lan"),  # RFC 6762, appendix G
    *(".test", ".invalid"),  # RFC 6761: never public
    *(".intra", ".svc", ".default"),  # usual inside companies; services of a Kubernetes cluster
    # Metadata services that go by a public name:
    *(".metadata.goog", ".metadata.tencentyun.com", ".metadata.cloud.ibm.com"),
    *(".metadata.packet.net", ".metadata.platformequinix.com"),
)


def is_private(name: str) -> bool:
    """Whether a host from `host` is inside somebody's network, as far as its text tells.

    Loopback, private, link-local, shared, reserved and metadata addresses in every spelling,
    embedded in IPv6 too; local names, which those without a dot are. A public name that *resolves*
    to such an address cannot be told from here: whoever fetches has to check that. Empty
    (undecidable) counts as private.
    """
    found = addresses(name)
    if found is None:
        return "." not in name or f".{name}".endswith(_LOCAL_SUFFIXES)
    return not found or not all(map(_is_public, found))


_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]+")


def addresses(name: str) -> list[Address] | None:
    """Every address that some reader takes `name` for; None when it is a name, not an address.

    Empty when it looks like an address and no reader can agree which.
    """
    if ":" in name:
        try:
            return [ipaddress.IPv6Address(name)]
        except ValueError:
            return []
    parts = name.split(".")
    if not _NUMBER.fullmatch(parts[-1]):
        return None
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return []
    octal = _ipv4([_number(part, octal=True) for part in parts])
    decimal = _ipv4([_number(part, octal=False) for part in parts])
    return [] if octal is None or decimal is None else [octal, decimal]


def _number(part: str, *, octal: bool) -> int | None:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    try:
        return int(part, 8 if octal and part.startswith("0") else 10)
    except ValueError:  # 08: no octal number
        return None


def _ipv4(numbers: list[int | None]) -> Address | None:
    """The address of one to four numbers, the last of which fills what is left (inet_aton)."""
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        return None
    *leading, last = known
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(known)):
        return None
    value = last
    for place, number in enumerate(leading):
        value += number << (24 - 8 * place)
    return ipaddress.IPv4Address(value)


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP: Final = 0x00005EFE
"""Stands before the IPv4 address in an interface's identifier (RFC 5214)."""
_ISATAP_MASK: Final = 0xFDFFFFFF
"""All but the bit that says whether that address is a global one."""
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is given out to the public; what is beside it is special or unassigned."""

_SPECIAL: Final = (
    ipaddress.IPv4Network("168.63.129.16/32"),  # Azure's own host, by a global address
    # Not in every Python's table of what is not global:
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocol assignments; Oracle's metadata
    ipaddress.IPv4Network("192.88.99.0/24"),  # 6to4 relays
    # Anycast: whoever is nearest answers, which may be somebody in the same network.
    ipaddress.IPv4Network("192.31.196.0/24"),
    ipaddress.IPv4Network("192.52.193.0/24"),
    ipaddress.IPv4Network("192.175.48.0/24"),
    ipaddress.IPv6Network("2620:4f:8000::/48"),
    ipaddress.IPv6Network("2001::/23"),  # protocol assignments; Teredo
    ipaddress.IPv6Network("3fff::/20"),  # documentation
)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        embedded = _embedded(address)
        if embedded is not None and not _is_public(embedded):
            return False
        if address not in _UNICAST:
            return address.ipv4_mapped is not None or address in _NAT64
    if address.is_multicast or any(address in network for network in _SPECIAL):
        return False
    return address.is_global


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that traffic to an IPv6 one ends at."""
    if embedded := address.ipv4_mapped or address.sixtofour:
        return embedded
    lowest = int(address)
    if address in _NAT64 or (lowest >> 32) & _ISATAP_MASK == _ISATAP:
        return ipaddress.IPv4Address(lowest & 0xFFFFFFFF)
    return None
