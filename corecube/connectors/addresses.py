"""Which network addresses a connector may speak to.

A name is resolved once, every address that it stands for is checked, and the connection goes to a checked address,
so that a name cannot stand for one machine while it is checked and for another when it is used.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from corecube.connectors.types import ItemError
from corecube.metadata_addresses import REFUSAL, Address, names_refused

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]

#: IPv6 addresses that stand for an IPv4 one behind a translator (RFC 6052).
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that a name stands for, in the system's order of preference; raise OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Lets connections through to public addresses, and to those that are allowed by network or by host name."""

    #: Private networks that may be spoken to.
    networks: tuple[Network, ...] = ()
    #: Hosts that somebody entrusted with the right to configure has named; their addresses are not looked at.
    trusted_hosts: frozenset[str] = frozenset()
    resolve: Resolve = resolve

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return where a host can be reached.

        Raises ItemError "unreachable" for a name that nobody knows, and "private_address" when any of its addresses
        is not allowed. Link-local and metadata addresses never are, whatever is trusted.
        """
        try:
            found = self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ItemError("unreachable", f"The name {host} is not known.") from error
        if any(map(names_refused, found)):
            raise ItemError("private_address", f"{host}: {REFUSAL}")
        if host.lower() not in self.trusted_hosts and not all(self._allows(it) for it in found):
            raise ItemError("private_address", f"{host} is an address inside a private network.")
        if not found:
            raise ItemError("unreachable", f"The name {host} has no address.")
        return found

    def _allows(self, text: str) -> bool:
        address = _meant(ipaddress.ip_address(text.partition("%")[0]))
        return _is_public(address) or any(address in network for network in self.networks)


def _is_public(address: Address) -> bool:
    """Return whether an address belongs to one machine on the internet."""
    if isinstance(address, ipaddress.IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _meant(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for, or the address itself."""
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
