import stat

from corecube.env import secret_key


def test_the_key_is_drawn_once_and_kept(tmp_path):
    first = secret_key(tmp_path / "secret_key")
    assert len(first) >= 50
    assert secret_key(tmp_path / "secret_key") == first


def test_two_installations_have_different_keys(tmp_path):
    assert secret_key(tmp_path / "a") != secret_key(tmp_path / "b")


def test_only_its_owner_can_read_the_key(tmp_path):
    secret_key(tmp_path / "secret_key")
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
