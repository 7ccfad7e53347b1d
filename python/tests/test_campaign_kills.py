"""A small part of campaign_kills.py, which takes too long to be run each time."""

import campaign_kills
import pytest


@pytest.mark.slow
def test_a_campaign_that_is_killed_resumes_and_leaves_nothing() -> None:
    trial = campaign_kills.run(len(campaign_kills.KINDS), seed=5, depths=("016",))
    assert set(trial.kills) == set(campaign_kills.KINDS)
