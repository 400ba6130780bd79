import pytest

from corecube.backup.sealing import SALT_BYTES, Seal
from corecube.errors import BackupError

SALT = bytes(SALT_BYTES)
TEXT = b"The codeword is tangerine. " * 100


@pytest.fixture(scope="module")
def sealed():
    return Seal.of_passphrase("correct horse", SALT)


@pytest.fixture(params=["plain", "sealed"])
def seal(request, sealed):
    return sealed if request.param == "sealed" else Seal()


def test_what_was_packed_is_unpacked(seal):
    name = seal.name(TEXT)
    stored = seal.pack(name, TEXT)
    assert len(stored) < len(TEXT)
    assert seal.unpack(name, stored, max_bytes=len(TEXT)) == TEXT


def test_a_changed_byte_is_noticed(seal):
    name = seal.name(TEXT)
    stored = bytearray(seal.pack(name, TEXT))
    for place in (0, len(stored) // 2, len(stored) - 1):
        changed = bytearray(stored)
        changed[place] ^= 1
        with pytest.raises(BackupError, match="damaged"):
            seal.unpack(name, bytes(changed), max_bytes=len(TEXT))


def test_a_cut_off_piece_is_noticed(seal):
    name = seal.name(TEXT)
    with pytest.raises(BackupError, match="damaged"):
        seal.unpack(name, seal.pack(name, TEXT)[:-3], max_bytes=len(TEXT))


def test_a_piece_that_unpacks_to_too_much_is_refused(seal):
    name = seal.name(TEXT)
    with pytest.raises(BackupError, match="damaged"):
        seal.unpack(name, seal.pack(name, TEXT), max_bytes=len(TEXT) - 1)


def test_an_encrypted_piece_shows_nothing_and_is_never_the_same(sealed):
    name = sealed.name(TEXT)
    first, second = sealed.pack(name, TEXT), sealed.pack(name, TEXT)
    assert first != second
    assert Seal().pack(name, TEXT)[:20] not in first
    assert name != Seal().name(TEXT)


def test_an_encrypted_piece_opens_only_under_its_name(sealed):
    stored = sealed.pack(sealed.name(TEXT), TEXT)
    with pytest.raises(BackupError, match="damaged"):
        sealed.unpack(sealed.name(b"another"), stored, max_bytes=len(TEXT))


def test_another_passphrase_or_salt_makes_other_keys(sealed):
    for other in (Seal.of_passphrase("correct horses", SALT), Seal.of_passphrase("correct horse", b"1" * SALT_BYTES)):
        assert other.proof != sealed.proof
        with pytest.raises(BackupError, match="damaged"):
            other.unpack("name", sealed.pack("name", TEXT), max_bytes=len(TEXT))


def test_its_text_shows_no_key(sealed):
    assert sealed.naming_key.hex() not in repr(sealed)
    assert repr(sealed) == "Seal()"
