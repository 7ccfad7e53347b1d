"""Parts of a tree: --sample and --one-at-a-time."""

from __future__ import annotations

import itertools
from pathlib import Path

from campaign_trees import Campaign, events, leaf_order

from iosonar.campaign.subset import Subset
from iosonar.campaign.tree import Leaf

LEVELS = (("bursts", "steady"), ("depth-001", "depth-016", "depth-256"), ("raid0", "raid5"), ("repeat-1", "repeat-2"))


def leaves(*levels: tuple[str, ...]) -> list[Leaf]:
    return [Leaf(Path("/top"), path) for path in itertools.product(*(levels or LEVELS))]


def runs(subset: Subset, tree: list[Leaf]) -> list[str]:
    left_out = subset.left_out(tree)
    return [leaf.name for leaf in tree if leaf.name not in left_out]


def test_a_sample_has_whole_combinations_by_its_seed() -> None:
    found = runs(Subset(5, 1), leaves())
    assert len(found) == 10 and found == runs(Subset(5, 1), leaves())
    assert {name[:-1] for name in found if name.endswith("1")} == {name[:-1] for name in found if name.endswith("2")}
    assert len({tuple(runs(Subset(5, seed), leaves())) for seed in range(20)}) > 10
    assert runs(Subset(100, 1), leaves()) == runs(Subset(), leaves()) == [leaf.name for leaf in leaves()]


def test_a_larger_sample_and_a_larger_tree_keep_the_others() -> None:
    assert set(runs(Subset(3), leaves())) < set(runs(Subset(6), leaves()))
    larger = leaves(*LEVELS[:1], (*LEVELS[1], "depth-512"), *LEVELS[2:])
    added = {name for name in runs(Subset(6), larger) if "512" in name}
    assert set(runs(Subset(6), larger)) - added <= set(runs(Subset(6), leaves()))


def test_one_at_a_time_varies_around_the_first_leaf() -> None:
    found = runs(Subset(one_at_a_time=True), leaves())
    assert [name.removesuffix("/repeat-1") for name in found if name.endswith("1")] == [
        "bursts/depth-001/raid0",
        "bursts/depth-001/raid5",
        "bursts/depth-016/raid0",
        "bursts/depth-256/raid0",
        "steady/depth-001/raid0",
    ]
    assert len(found) == 10
    assert Subset(one_at_a_time=True).left_out([]) == []


def test_a_subset_runs_is_continued_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top", dry_run=1)
    for path in itertools.product("ab", "xy"):
        campaign.leaf("/".join(path))
    planned = campaign.run("--one-at-a-time", "--dry-run")
    assert "--one-at-a-time leaves out 1 of 4 leaves:\n  b/y\n" in planned.stderr and "b/y: " not in planned.stdout
    done = campaign.run("--one-at-a-time", "--fail-on", "state != done", "--junit", str(tmp_path / "x.xml"))
    assert leaf_order(done.stderr) == ["a/x", "a/y", "b/x"]
    assert 'tests="3"' in (tmp_path / "x.xml").read_text()
    (campaign.top / "a/y" / campaign.results("a/y")[0]).unlink()
    assert leaf_order(campaign.run("--one-at-a-time").stderr) == ["a/y"]
    (note,) = events(campaign.run("--sample", "1", "--json").stdout, "note")
    assert note["text"].startswith("--sample 1 --seed 1 leaves out 3 of 4 leaves") and len(note["left_out"]) == 3
    # What is left out runs later.
    assert leaf_order(campaign.run().stderr) == ["b/y"]


def test_subsets_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    assert "use one of them" in campaign.run("--sample", "2", "--one-at-a-time", status=2).stderr
    assert "add --sample N" in campaign.run("--seed", "2", status=2).stderr
    campaign.run("--sample", "0", status=2)
    assert not (campaign.top / ".campaign").exists()
