"""The folder of snapshots: two are kept, a torn one is not trusted, one writer at a time."""

import pytest

from streamclust.errors import AdapterError, SnapshotError
from streamclust_adapters.snapshots import SnapshotFolder, load_newest, newest_first, set_aside
from tests.adapters.fake_clusterer import StreamClusterer


def fill(path, numbers):
    model = StreamClusterer()
    with SnapshotFolder(path) as folder:
        for number in numbers:
            folder.save(model, number, {"events": number})


def test_the_last_two_are_kept_in_the_order_of_events(tmp_path):
    fill(tmp_path / "new" / "folder", [0, 9, 10, 100])
    names = [path.name for path in newest_first(tmp_path / "new" / "folder")]
    assert names == [f"snapshot-{n:020d}.safetensors" for n in (100, 10)]


def test_the_newest_whole_one_is_loaded(tmp_path):
    fill(tmp_path, [10, 20])
    newest, older = newest_first(tmp_path)
    assert load_newest(tmp_path, StreamClusterer.load).model.source == {"events": 20}
    newest.write_bytes(newest.read_bytes()[:-5])
    found = load_newest(tmp_path, StreamClusterer.load)
    assert (found.path, found.model.source) == (older, {"events": 10})
    assert [path for path, _ in found.broken] == [newest]


def test_a_broken_one_that_is_set_aside_does_not_count_as_kept(tmp_path):
    fill(tmp_path, [10, 20])
    set_aside(newest_first(tmp_path)[0])
    fill(tmp_path, [15])
    assert [load_newest(tmp_path, StreamClusterer.load).model.source] == [{"events": 15}]
    assert len(newest_first(tmp_path)) == 2


def test_no_snapshot_is_none_and_only_broken_ones_are_a_failure(tmp_path):
    assert load_newest(tmp_path, StreamClusterer.load) is None
    fill(tmp_path, [10])
    newest_first(tmp_path)[0].write_bytes(b"0" * 100)
    with pytest.raises(SnapshotError, match=r"no snapshot in .* can be trusted: snapshot-0*10"):
        load_newest(tmp_path, StreamClusterer.load)


def test_one_process_at_a_time_writes_to_a_folder(tmp_path):
    with SnapshotFolder(tmp_path), pytest.raises(AdapterError, match="another process"):
        SnapshotFolder(tmp_path)
    with SnapshotFolder(tmp_path):
        pass


def test_what_a_killed_writer_left_is_removed(tmp_path):
    (tmp_path / ".snapshot-7.safetensors.123.tmp").write_text("half")
    fill(tmp_path, [10])
    assert [path.name for path in tmp_path.iterdir()] == [f"snapshot-{10:020d}.safetensors"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AdapterError, match=r"cannot keep snapshots in .*file: "):
        SnapshotFolder(tmp_path / "file")


def test_a_full_disk_is_a_failure_that_keeps_the_ones_before(tmp_path):
    class Full(StreamClusterer):
        def save(self, path, source=None):
            raise OSError(28, "No space left on device")

    fill(tmp_path, [10, 20])
    with SnapshotFolder(tmp_path) as folder, pytest.raises(SnapshotError, match="No space left"):
        folder.save(Full(), 30, {})
    assert len(newest_first(tmp_path)) == 2
