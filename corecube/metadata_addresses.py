"""Blocks connections to link-local addresses and to the metadata services of cloud providers.

A metadata service returns the credentials of the machine to any local process. The check runs when a socket connects,
after name resolution, so that no client, redirect or changed DNS response can bypass it.
"""

import errno
import ipaddress
import logging
import socket
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, TypeAlias

logger = logging.getLogger(__name__)

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

REFUSAL: Final = "The address is link-local or belongs to a metadata service. CoreCube never connects to these."
_NETWORKS: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            *("169.254.0.0/16", "fe80::/10"),
            "168.63.129.16/32",  # Azure
            "100.100.100.200/32",  # Alibaba Cloud
            "fd00:ec2::/32",  # Amazon
            "fd20:ce::254/128",  # Google
            "fd00:c1::a9fe:a9fe/128",  # Oracle
            "fd00:42::42/128",  # Scaleway
        ),
    )
)
#: IPv6 networks whose addresses contain an IPv4 address at the end: compatible, mapped, translated, NAT64.
_ENDS_WITH_IPV4: Final = tuple(
    map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
)
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})  #: Prefixes of an ISATAP interface identifier (RFC 5214).
_LOW_32: Final = 0xFFFF_FFFF
_FAMILIES: Final = frozenset({socket.AF_INET, socket.AF_INET6})
#: Audit events before a socket sends; the arguments are the socket and the address.
_SENDING: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})


def is_refused(address: Address) -> bool:
    """Return whether an address, or an embedded IPv4 address, is blocked."""
    return any(it in network for it in _embedded(address) for network in _NETWORKS)


def names_refused(host: str) -> bool:
    """Return whether a host is a blocked address in any notation. Names are not resolved."""
    address = _parsed(host)
    return address is not None and is_refused(address)


@cache
def refuse_connections() -> None:
    """Make all sockets of this process raise PermissionError for these addresses."""
    sys.addaudithook(_on_audit)


def _on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _SENDING and arguments[0].family in _FAMILIES and isinstance(arguments[1], tuple):
        host = arguments[1][0]
        if _resolves_to_refused(host):
            logger.warning("address.refused host=%s", host)
            raise PermissionError(errno.EACCES, REFUSAL)


def _resolves_to_refused(host: str) -> bool:
    if (address := _parsed(host)) is not None:
        return is_refused(address)
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    return any(map(names_refused, found))


def _parsed(host: str) -> Address | None:
    """Return the address in any notation, such as one number or octal; None for a name."""
    plain = host.strip("[]").partition("%")[0].rstrip(".")
    try:
        return ipaddress.ip_address(plain)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(plain))
    except (OSError, ValueError):
        return None


def _embedded(address: Address) -> Iterator[Address]:
    yield address
    if not isinstance(address, ipaddress.IPv6Address):
        return
    last = ipaddress.IPv4Address(int(address) & _LOW_32)
    if any(address in network for network in _ENDS_WITH_IPV4) or (int(address) >> 32 & _LOW_32) in _ISATAP:
        yield last
    if address.sixtofour:
        yield address.sixtofour
    yield from address.teredo or ()
