import stat

from corecube.settings import _secret_key


def test_the_key_is_drawn_once_and_kept(tmp_path):
    first = _secret_key(tmp_path / "secret_key")
    assert len(first) >= 50
    assert _secret_key(tmp_path / "secret_key") == first


def test_two_installations_have_different_keys(tmp_path):
    assert _secret_key(tmp_path / "a") != _secret_key(tmp_path / "b")


def test_only_its_owner_can_read_the_key(tmp_path):
    _secret_key(tmp_path / "secret_key")
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
