"""All detectors, in the order of their numbers. A newcomer adds a file and a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iosonar.findings.calls import (
    failing_lookups,
    metadata_storm,
    one_thread_serialises,
    random_reads_of_sequential_file,
    reads_of_just_written,
    redundant_opens,
    redundant_stats,
    slow_calls_by_file_system,
    small_sequential_io,
    small_synchronous_writes,
    sync_after_each_write,
)
from iosonar.findings.detector import Detector
from iosonar.findings.diagnosis import Diagnosis, Doubt, diagnose
from iosonar.findings.requests import (
    backlog_recovery,
    burst_bucket,
    cache_levels,
    depth_not_seen,
    dropped_requests,
    garbage_collection,
    global_queue,
    interference,
    machine_short,
    needles,
    not_recreated,
    ordering_throttles,
    periodic_stalls,
    queue_collapse,
    rate_limit,
    replayer_late,
    saturation,
    scheduler,
    short_run,
    slow_device,
    unwritten_areas,
    wrap_around,
    write_back_cliff,
)
from iosonar.findings.thresholds import Limits, Threshold
from iosonar.study.base import cached
from iosonar.study.calls import CallStudy
from iosonar.study.of_calls import judgement_of_calls
from iosonar.study.requests import Study
from iosonar.study.runs import doubt_of

OF_REQUESTS: tuple[Detector[Study], ...] = (
    cache_levels.DETECTOR,
    write_back_cliff.DETECTOR,
    saturation.DETECTOR,
    backlog_recovery.DETECTOR,
    queue_collapse.DETECTOR,
    needles.DETECTOR,
    periodic_stalls.DETECTOR,
    global_queue.DETECTOR,
    garbage_collection.DETECTOR,
    interference.DETECTOR,
    slow_device.DETECTOR,
    unwritten_areas.DETECTOR,
    wrap_around.DETECTOR,
    short_run.DETECTOR,
    not_recreated.DETECTOR,
    scheduler.DETECTOR,
    rate_limit.DETECTOR,
    burst_bucket.DETECTOR,
    depth_not_seen.DETECTOR,
    replayer_late.DETECTOR,
    ordering_throttles.DETECTOR,
    dropped_requests.DETECTOR,
    machine_short.DETECTOR,
)

OF_CALLS: tuple[Detector[CallStudy], ...] = (
    small_synchronous_writes.DETECTOR,
    sync_after_each_write.DETECTOR,
    metadata_storm.DETECTOR,
    reads_of_just_written.DETECTOR,
    random_reads_of_sequential_file.DETECTOR,
    one_thread_serialises.DETECTOR,
    redundant_opens.DETECTOR,
    redundant_stats.DETECTOR,
    failing_lookups.DETECTOR,
    small_sequential_io.DETECTOR,
    slow_calls_by_file_system.DETECTOR,
)


def all_detectors() -> tuple[Detector[Any], ...]:
    """Those of requests, then those of calls."""
    return (*OF_REQUESTS, *OF_CALLS)


def thresholds() -> Mapping[str, Sequence[Threshold]]:
    """The thresholds of each finding, by its number."""
    return {each.number: each.thresholds for each in all_detectors()}


def diagnose_requests(study: Study, overrides: Mapping[str, Limits] | None = None) -> Diagnosis:
    """All findings of requests."""
    return _usual(study) if not overrides else diagnose(study, OF_REQUESTS, _doubt(study), overrides)


@cached
def _usual(study: Study) -> Diagnosis:
    """With the defaults of all thresholds, computed once."""
    return diagnose(study, OF_REQUESTS, _doubt(study))


def diagnose_calls(study: CallStudy, overrides: Mapping[str, Limits] | None = None) -> Diagnosis:
    """All findings of a trace of calls, or of a run of them."""
    return _usual_of_calls(study) if not overrides else diagnose(study, OF_CALLS, _doubt_of_calls(study), overrides)


@cached
def _usual_of_calls(study: CallStudy) -> Diagnosis:
    """With the defaults of all thresholds, computed once."""
    return diagnose(study, OF_CALLS, _doubt_of_calls(study))


def _doubt_of_calls(study: CallStudy) -> Doubt:
    """Times of a fake replay are none."""
    return Doubt(judgement_of_calls(study.first).doubt, hides=True)


def _doubt(study: Study) -> Doubt:
    """Times of an unfaithful replay are those of the replayer; others are shown, with what is to be said of them."""
    why = doubt_of(study)
    return Doubt(why, hides=why == UNFAITHFUL)


UNFAITHFUL = "the replay was not faithful"
