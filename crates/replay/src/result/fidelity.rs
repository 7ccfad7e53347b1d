//! The verdict on a run: whether it kept the load's times as far as that was the replayer's to do.
//!
//! A request that a full depth or an overlap held back was late because the device had not answered: that is a result, and
//! not counted against the replayer. All others are its own. A replay is *faithful* if at least 95 % of its own requests
//! went out within 50 µs of their time. Buttress reached that for the burstier of its two traces; and where it made issue
//! times worse on purpose, by milliseconds, response times changed by up to 37 % and queue lengths eleven times.

use std::collections::VecDeque;

use iosonar_trace::human::{count, percent};
use iosonar_trace::run_info::{Cause, Late, Moment, Part, Verdict};
use iosonar_trace::{DelayReason, IoResult, Nanos};

use crate::issuer::{Activity, Stall};
use crate::result::histogram::Times;

/// A request that is later than this is late.
pub const LATE: Nanos = Nanos(50_000);
/// So many percent of the replayer's own requests must not be late.
pub const NEEDED_PCT: f64 = 95.0;
/// How many worst moments are kept.
const MOMENTS: usize = 10;
/// Requests closer together than this belong to one moment.
const MOMENT: Nanos = Nanos(100_000_000);
/// Stalls that are remembered until the requests that they made late are through.
const STALLS: usize = 4096;

/// Counts towards the verdict, request by request, in constant memory.
#[derive(Clone, Debug)]
pub struct Fidelity {
    own: Times,
    device: Times,
    perturbed: u64,
    late: [u64; Cause::ALL.len()],
    worst: Vec<Moment>,
    stalls: VecDeque<Stall>,
}

impl Default for Fidelity {
    fn default() -> Self {
        Self {
            own: Times::new(),
            device: Times::new(),
            perturbed: 0,
            late: [0; Cause::ALL.len()],
            worst: Vec::new(),
            stalls: VecDeque::new(),
        }
    }
}

impl Fidelity {
    /// Takes a stall of the loop into account, before the requests that it made late.
    pub fn stall(&mut self, stall: Stall) {
        if self.stalls.len() == STALLS {
            self.stalls.pop_front();
        }
        self.stalls.push_back(stall);
    }

    /// Takes a row into account.
    pub fn add(&mut self, record: &IoResult) {
        let Some(delay) = record.delay() else { return };
        self.perturbed += u64::from(record.delay_reason == DelayReason::Perturbed);
        let held = held(record);
        if record.is_not_held_back() {
            self.own.add(delay);
        } else if held.is_some_and(Cause::is_due_to_device) {
            self.device.add(delay);
        }
        if delay > LATE {
            let cause = held.unwrap_or_else(|| self.cause_of_stall(record));
            self.late[cause as usize] += 1;
            self.moment(record, delay, cause);
        }
    }

    /// What the loop was activity when the request should have gone.
    fn cause_of_stall(&self, record: &IoResult) -> Cause {
        let behind = self.stalls.partition_point(|stall| stall.to <= record.scheduled);
        // A stall that begins only after it can be what kept it as well, if it was due just before.
        match self.stalls.get(behind).filter(|stall| Some(stall.from) < record.issued) {
            Some(Stall { activity: Activity::Submitting, .. }) => Cause::Submission,
            Some(Stall { activity: Activity::Reaping, .. }) => Cause::Completions,
            Some(Stall { activity: Activity::Waiting | Activity::Choosing | Activity::Preempted, .. }) => {
                Cause::Descheduled
            }
            None if record.waiting > 0 || record.in_flight > 1 => Cause::Burst,
            None => Cause::Unknown,
        }
    }

    fn moment(&mut self, record: &IoResult, delay: Nanos, cause: Cause) {
        let at_s = record.scheduled.as_secs();
        let moment = Moment { at_s, request: record.request, late_us: delay.0 as f64 / 1e3, cause };
        let near = |other: &Moment| (other.at_s - at_s).abs() < MOMENT.as_secs();
        if let Some(same) = self.worst.iter().position(near) {
            if self.worst[same].late_us >= moment.late_us {
                return;
            }
            self.worst.remove(same);
        } else if self.worst.len() == MOMENTS {
            if self.worst[MOMENTS - 1].late_us >= moment.late_us {
                return;
            }
            self.worst.pop();
        }
        let place = self.worst.partition_point(|other| other.late_us >= moment.late_us);
        self.worst.insert(place, moment);
    }

    /// The verdict; `None` if nothing was issued.
    pub fn verdict(&self, complete: bool) -> Option<Verdict> {
        if self.own.count() + self.device.count() + self.perturbed == 0 {
            return None;
        }
        let part =
            |times: &Times| Part { requests: times.count(), delay_us: times.quantiles(), within_pct: times.within() };
        let (own, device) = (part(&self.own), part(&self.device));
        let faithful = self.perturbed == 0 && own.within_pct.is_none_or(|within| within.us50 >= NEEDED_PCT);
        let late: Vec<Late> = Cause::ALL
            .into_iter()
            .map(|cause| Late { cause, requests: self.late[cause as usize] })
            .filter(|late| late.requests > 0)
            .collect();
        let sentence = self.sentence(complete, &own, &device, &late);
        let (worst, remedies) = (self.worst.clone(), Vec::new());
        Some(Verdict { faithful, sentence, own, device, late, worst, remedies })
    }

    fn sentence(&self, complete: bool, own: &Part, device: &Part, late: &[Late]) -> String {
        let so_far = if complete { "This replay" } else { "As far as it went, this replay" };
        let mut text = match &own.within_pct {
            _ if self.perturbed > 0 => {
                format!("{so_far} was not faithful, and was not meant to be: issue times were perturbed on purpose")
            }
            None => format!("{so_far} was faithful: the device alone made its requests late"),
            Some(within) if within.us50 >= NEEDED_PCT => {
                let of = if device.requests > 0 { "the requests that were not held back" } else { "its requests" };
                let (in_10, in_50) = (percent(within.us10 / 100.0), percent(within.us50 / 100.0));
                format!(
                    "{so_far} was faithful: {in_10} of {of} went out within 10 µs of their time, {in_50} within 50 µs"
                )
            }
            Some(within) => {
                let mut text = format!(
                    "{so_far} was not faithful: only {} of the requests that were not held back went out within 50 µs of their \
                     time, and {NEEDED_PCT:.0} % are needed",
                    percent(within.us50 / 100.0)
                );
                let own = || late.iter().filter(|late| !late.cause.is_due_to_device());
                if let Some(most) = own().max_by_key(|late| late.requests) {
                    let all: u64 = own().map(|late| late.requests).sum();
                    let (most_often, all) = (count(most.requests), count(all));
                    text += &format!("; {most_often} of {all} late ones because {}", most.cause.phrase());
                }
                text
            }
        };
        let devices: u64 = late.iter().filter(|late| late.cause.is_due_to_device()).map(|late| late.requests).sum();
        let share = devices as f64 / (own.requests + device.requests) as f64;
        if share >= 0.001 && own.requests > 0 {
            text += &format!(". The device made {} late by answering late, which is its result", percent(share));
        }
        text + "."
    }
}

/// What the row itself says.
fn held(record: &IoResult) -> Option<Cause> {
    if record.pushed_back {
        return Some(Cause::Overlap);
    }
    match record.delay_reason {
        DelayReason::None => None,
        DelayReason::Depth => Some(Cause::Depth),
        DelayReason::Order => Some(Cause::Order),
        DelayReason::Input => Some(Cause::Input),
        DelayReason::CompletionLog => Some(Cause::CompletionLog),
        DelayReason::Perturbed => Some(Cause::Perturbed),
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Op, Outcome, Request, Sector, Sectors};

    use super::*;

    const US: i64 = 1000;

    /// Issued that many µs late, at second `request`.
    fn row(request: u64, late_us: i64, delay_reason: DelayReason) -> IoResult {
        let scheduled = Nanos(request as i64 * 1_000_000_000);
        let issued = Some(scheduled + Nanos(late_us * US));
        IoResult {
            issued,
            completed: issued,
            delay_reason,
            outcome: Outcome::Ok,
            ..IoResult::of(&Request::new(scheduled, Op::Read, Sector(0), Sectors(8)), request)
        }
    }

    fn verdict(rows: impl IntoIterator<Item = IoResult>) -> Verdict {
        let mut fidelity = Fidelity::default();
        rows.into_iter().for_each(|row| fidelity.add(&row));
        fidelity.verdict(true).unwrap()
    }

    #[test]
    fn what_goes_in_time_is_faithful() {
        let found = verdict((0..100).map(|i| row(i, if i < 3 { 20 } else { 2 }, DelayReason::None)));
        assert!(found.faithful && found.late.is_empty() && found.worst.is_empty());
        let expected =
            "This replay was faithful: 97.0 % of its requests went out within 10 µs of their time, 100 % within 50 µs.";
        assert_eq!(found.sentence, expected);
    }

    #[test]
    fn what_the_device_made_late_is_not_held_against_the_replayer() {
        let held = |i| if i % 2 == 0 { DelayReason::Depth } else { DelayReason::None };
        let found = verdict((0..100).map(|i| row(i, if i % 2 == 0 { 5000 } else { 2 }, held(i))));
        assert!(found.faithful, "{found:?}");
        assert_eq!((found.own.requests, found.device.requests), (50, 50));
        assert_eq!(found.own.within_pct.unwrap().us50, 100.0);
        assert_eq!(found.device.within_pct.unwrap().us100, 0.0);
        assert!((found.device.delay_us.unwrap().p50 - 5000.0).abs() < 5.0, "{found:?}");
        assert_eq!(found.late, [Late { cause: Cause::Depth, requests: 50 }]);
        assert!(found.sentence.contains("The device made 50.0 % late"), "{}", found.sentence);
        let overlap = IoResult { pushed_back: true, ..row(0, 900, DelayReason::None) };
        assert_eq!(verdict([overlap]).worst[0].cause, Cause::Overlap);
    }

    #[test]
    fn what_the_replayer_made_late_is_and_the_reason_is_said() {
        let late = |i| if i % 10 == 0 { row(i, 300, DelayReason::Input) } else { row(i, 1, DelayReason::None) };
        let found = verdict((0..100).map(late));
        assert!(!found.faithful);
        assert!(found.sentence.contains("was not faithful: only 90.0 %"), "{}", found.sentence);
        assert!(found.sentence.contains("10 of 10 late ones because the load was not read"), "{}", found.sentence);
    }

    #[test]
    fn stalls_of_the_loop_explain_what_they_made_late() {
        let doings = [
            (Activity::Submitting, Cause::Submission),
            (Activity::Reaping, Cause::Completions),
            (Activity::Waiting, Cause::Descheduled),
            (Activity::Preempted, Cause::Descheduled),
        ];
        let mut fidelity = Fidelity::default();
        for (i, (activity, _)) in (1..).zip(doings) {
            let at = Nanos(i * 1_000_000_000);
            fidelity.stall(Stall { from: at - Nanos(50 * US), to: at + Nanos(400 * US), activity });
        }
        (1..=4).for_each(|i| fidelity.add(&row(i, 401 + i as i64, DelayReason::None)));
        fidelity.add(&row(5, 100, DelayReason::None));
        fidelity.add(&IoResult { waiting: 5, ..row(6, 90, DelayReason::None) });
        let worst: Vec<_> = fidelity.verdict(true).unwrap().worst.iter().map(|m| (m.request, m.cause)).collect();
        let [submission, completions, waiting, preempted] = doings.map(|(_, cause)| cause);
        let expected =
            [(4, preempted), (3, waiting), (2, completions), (1, submission), (5, Cause::Unknown), (6, Cause::Burst)];
        assert_eq!(worst, expected);
    }

    #[test]
    fn the_worst_moments_are_few_and_each_is_one_moment() {
        let mut fidelity = Fidelity::default();
        // A thousand seconds, each with three late requests of one moment; the middle one is the worst.
        for i in 0..1000_u64 {
            for (part, late) in [(0, 100), (1, 200 + i as i64), (2, 150)] {
                let at = Nanos((i * 1_000_000_000 + part * 1_000_000) as i64);
                let row = row(i * 3 + part, 0, DelayReason::None);
                fidelity.add(&IoResult { scheduled: at, issued: Some(at + Nanos(late * US)), ..row });
            }
        }
        let worst = fidelity.verdict(true).unwrap().worst;
        assert!(worst.iter().map(|m| m.request).eq((990..1000).rev().map(|i| i * 3 + 1)), "{worst:?}");
    }

    #[test]
    fn perturbed_cut_short_or_empty() {
        let found = verdict([row(0, 1000, DelayReason::Perturbed), row(1, 0, DelayReason::None)]);
        assert!(!found.faithful && found.sentence.contains("perturbed on purpose"), "{found:?}");
        let mut fidelity = Fidelity::default();
        assert_eq!(fidelity.verdict(true), None);
        fidelity.add(&row(0, 1, DelayReason::None));
        assert!(fidelity.verdict(false).unwrap().sentence.starts_with("As far as it went, this replay was faithful"));
    }
}
