"""Which directories of a campaign are leaves, and in which order they run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from campaign_trees import Campaign, leaf_order

from iosonar.campaign.tree import leaves, stop_file


def make(top: Path, *paths: str) -> None:
    for path in paths:
        (top / path).mkdir(parents=True, exist_ok=True)


def names(top: Path) -> list[str]:
    return [leaf.name for leaf in leaves(top)]


def test_a_leaf_is_a_directory_without_subdirectories(tmp_path: Path) -> None:
    make(tmp_path, "short/model1", "short/model2", "long")
    assert names(tmp_path) == ["long", "short/model1", "short/model2"]


def test_leaves_are_in_the_ascii_order_of_their_full_paths(tmp_path: Path) -> None:
    make(tmp_path, "b/1", "B/2", "a-b/z", "a/z", "a0/z", "10", "9", "é")
    assert names(tmp_path) == ["10", "9", "B/2", "a-b/z", "a/z", "a0/z", "b/1", "é"]


def test_files_and_symbolic_links_are_no_directories_of_the_tree(tmp_path: Path) -> None:
    make(tmp_path, "a")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["try1.old", "x.older", "old", "oldest", "ignore", "do-ignore-it", ".hidden"])
def test_a_directory_with_such_a_name_does_not_count(tmp_path: Path, name: str) -> None:
    make(tmp_path, f"short/model1/{name}/below", f"short/{name}")
    assert names(tmp_path) == ["short/model1"]


@pytest.mark.parametrize("name", ["cold", "hold-on", "threshold", "Old", "Ignore"])
def test_a_directory_with_a_similar_name_counts(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    assert names(tmp_path) == [name]


def test_a_file_skip_disables_a_leaf(tmp_path: Path) -> None:
    make(tmp_path, "a/1", "a/2", "b")
    (tmp_path / "a/1/skip").touch()
    assert names(tmp_path) == ["a/2", "b"]


def test_a_file_skip_disables_the_directories_below(tmp_path: Path) -> None:
    make(tmp_path, "a/1/x", "a/2", "b")
    (tmp_path / "a/skip").touch()
    assert names(tmp_path) == ["b"]


def test_a_directory_whose_leaves_are_all_skipped_is_no_leaf(tmp_path: Path) -> None:
    make(tmp_path, "a/1", "b")
    (tmp_path / "a/1/skip").touch()
    assert names(tmp_path) == ["b"]


def test_a_file_skip_at_the_top_disables_all(tmp_path: Path) -> None:
    make(tmp_path, "a", "b")
    (tmp_path / "skip").touch()
    assert names(tmp_path) == []


def test_a_top_without_directories_is_a_leaf(tmp_path: Path) -> None:
    make(tmp_path, ".campaign/undo", "failed-1.old")
    found = leaves(tmp_path)
    assert [leaf.path for leaf in found] == [()]
    assert found[0].directory == tmp_path


def test_the_smaller_prio_runs_first_then_the_path_decides(tmp_path: Path) -> None:
    make(tmp_path, "a", "b", "c", "d", "e")
    for path in ("e/prio-1", "d/prio-2", "c/prio-10", "b/prio-10", "e/prio-99", "a/prio-x", "a/prio-"):
        (tmp_path / path).touch()
    assert names(tmp_path) == ["e", "d", "b", "c", "a"]


def test_a_file_stop_counts_at_the_top_and_in_the_leaf(tmp_path: Path) -> None:
    make(tmp_path, "a", "b/c")
    first, second = leaves(tmp_path)
    assert stop_file(tmp_path, first) is None
    (tmp_path / "b/c/stop").touch()
    assert stop_file(tmp_path, first) is None
    assert stop_file(tmp_path, second) == tmp_path / "b/c/stop"
    (tmp_path / "stop").touch()
    assert stop_file(tmp_path, first) == tmp_path / "stop"


def test_an_unreadable_directory_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/1", "b")
    scan = os.scandir

    def refuse(directory: Path) -> object:
        if directory.name == "a":
            raise PermissionError
        return scan(directory)

    monkeypatch.setattr("os.scandir", refuse)
    assert names(tmp_path) == ["b"]


# Whole campaigns; no I/O and no waiting.


def test_finished_leaves_run_again_once_their_results_are_moved(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    for path in ("a/1", "a/2"):
        campaign.leaf(path)
    # A result of another program counts.
    (campaign.leaf("b") / "other.replay.gz").touch()
    assert leaf_order(campaign.run().stderr) == ["a/1", "a/2"]
    assert "nothing to do" in campaign.run().stderr
    kept = campaign.top / "a/1/try1.old"
    kept.mkdir()
    for name in campaign.results("a/1"):
        (campaign.top / "a/1" / name).rename(kept / name)
    assert leaf_order(campaign.run().stderr) == ["a/1"]
    assert campaign.state("a/1").attempt == 2
    assert campaign.state("a/2").attempt == 1


def test_a_leaf_added_meanwhile_is_run_in_its_place(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    campaign.leaf("b", "mkdir -p ../a && touch ../a.conf")
    campaign.leaf("c")
    assert leaf_order(campaign.run().stderr) == ["b", "a", "c"]


def test_a_file_stop_ends_the_campaign_after_the_leaf_that_runs(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    campaign.leaf("a", "touch ../stop")
    campaign.leaf("b")
    done = campaign.run()
    assert leaf_order(done.stderr) == ["a"]
    assert f"ended by the file {campaign.top / 'stop'}" in done.stderr
    assert campaign.results("a") and not campaign.results("b")


def test_a_campaign_started_inside_a_leaf_uses_the_defaults(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    leaf = campaign.leaf("a/b", "output_label=CHANGED")
    done = campaign.run("--work-dir", str(leaf))
    assert "started inside a leaf: only the defaults apply" in done.stderr
    assert [name.split(".")[0] for name in campaign.results("a/b")] == ["T"]
    assert "started inside a leaf: only the defaults apply" in campaign.state("a/b").notes
