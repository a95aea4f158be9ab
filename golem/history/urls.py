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
_USERINFO: Final = re.compile(r"(?:[\w.~!$&'()*+,;=:@-]|[^\x00-\x7f]|%[0-9a-fA-F]{2})*")
_HOST: Final = re.compile(
    r"(?:\[[0-9a-fA-F:.]+(?:%25[^\]]+)?\]|[^\x00-\x20\[\]\\^`{|}%#?@/:]*)(?::[0-9]*)?"
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
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        userinfo, _, host = authority.rpartition("@")
        if not _HOST.fullmatch(host) or not _USERINFO.fullmatch(userinfo):
            return ""
    return "" if _BAD_ESCAPE.search(rest) else found[1].lower()


_PLAIN_URL: Final = re.compile(
    r"https?://(?:[^/?#@\\]*@)?([^/?#@\\]+)(?:[/?#].*)?", re.IGNORECASE | re.DOTALL
)
_PORT: Final = re.compile(r":[0-9]*$")
_DEVIATING: Final = re.compile("[\u00df\u03c2\u200c\u200d]")
"""IDNA 2003 and 2008 make different hosts of these, so no two readers agree."""


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
        return name[1:].partition("]")[0].partition("%")[0].lower()
    return normal_host(_PORT.sub("", name))


def normal_host(name: str) -> str:
    """A host name in the spelling `host` gives; empty when it is none."""
    if _DEVIATING.search(name):
        return ""
    try:
        return name.encode("idna").decode().lower().rstrip(".")
    except UnicodeError:
        return ""


def is_allowed(name: str, allowed: Iterable[str]) -> bool:
    """Whether a host from `host` is one of `allowed`; ``.example.com`` allows what is below it."""
    return any(
        name == entry or (entry.startswith(".") and name.endswith(entry)) for entry in allowed
    )


_LOCAL_NAMES: Final = frozenset(
    {"localhost", "ip6-localhost", "ip6-loopback", "metadata", "instance-data", "broadcasthost"}
)
_LOCAL_SUFFIXES: Final = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa")
_PUBLIC_LOOKING: Final = frozenset({"168.63.129.16"})
"""Global by its range, but answered by a cloud's own host (Azure's metadata channel)."""


def is_private(name: str) -> bool:
    """Whether a host from `host` is inside somebody's network, as far as its text tells.

    Loopback, private, link-local, shared, reserved and metadata addresses in every spelling,
    embedded in IPv6 too; local names. A public name that *resolves* to such an address cannot be
    told from here: whoever fetches has to check that. Empty (undecidable) counts as private.
    """
    if not name or name in _LOCAL_NAMES or name.endswith(_LOCAL_SUFFIXES):
        return True
    found = addresses(name)
    if found is None:
        return False
    return not found or any(not _is_public(address) for address in found)


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
    if not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", parts[-1]):
        return None
    octal = _ipv4([_number(part, octal=True) for part in parts])
    decimal = _ipv4([_number(part, octal=False) for part in parts])
    return [address for address in (octal, decimal) if address is not None]


def _number(part: str, *, octal: bool) -> int | None:
    try:
        if part.startswith("0x"):
            return int(part[2:] or "0", 16)
        return int(part, 8) if octal and part.startswith("0") else int(part, 10)
    except ValueError:
        return None


def _ipv4(numbers: list[int | None]) -> Address | None:
    """The address of one to four numbers, the last of which fills what is left (inet_aton)."""
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers) or len(known) > 4:
        return None
    *leading, last = known
    if any(number > 255 for number in leading) or last >= 256 ** (5 - len(known)):
        return None
    value = last
    for place, number in enumerate(leading):
        value += number << (24 - 8 * place)
    return ipaddress.IPv4Address(value)


_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and (address in _NAT64 or address in _COMPATIBLE):
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return _is_public(embedded)
    return address.is_global and not address.is_multicast and str(address) not in _PUBLIC_LOOKING
