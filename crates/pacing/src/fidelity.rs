//! The verdict on a run: whether the replayer kept the scheduled times.
//!
//! A request held back by a full depth or an overlap was late because the device had not completed others: that is a result
//! of the measurement, not an error of the replayer, unless the replayer had been late before
//! ([`ideal`](crate::ideal)). A replay is *faithful* if at least 95 % of the requests not held back
//! were issued within 50 µs of their scheduled time. Buttress reached that for the burstier of its two traces. When it
//! degraded issue times on purpose, by milliseconds, response times changed by up to 37 % and queue lengths by a factor of
//! eleven.

use std::collections::VecDeque;

use iosonar_trace::Nanos;
use iosonar_trace::human::{count, percent, span};
use iosonar_trace::run_info::{Cause, Late, Moment, Part, Verdict};

use crate::demand::Burst;
use crate::histogram::Times;
use crate::stalls::{Activity, Stall};

pub use crate::ideal::LATE;

/// The least percentage of requests on time, among those not held back, in a faithful replay.
pub const FAITHFUL_PCT: f64 = 95.0;
/// The most moments in [`Verdict::worst`].
const MOMENTS: usize = 10;
/// Late requests closer together than this form one moment.
const MOMENT: Nanos = Nanos(100_000_000);
/// The most stalls kept for requests that are still in flight.
const STALLS: usize = 4096;

/// The words of the verdict for what is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// What is issued, in plural.
    pub plural: &'static str,
    /// What delays them although the replayer is on time.
    pub other: &'static str,
}

impl Words {
    /// For requests to devices.
    pub const REQUESTS: Self = Self { plural: "requests", other: "The device itself" };
}

/// Causes of delays that are not in the rows.
#[derive(Clone, Debug, Default)]
pub struct UncountedCauses {
    /// The burst of the load that is the farthest beyond the loop.
    pub burst: Option<Burst>,
    /// A clause about what other programs did to the disk.
    pub other_io: Option<String>,
}

/// A request or call that was issued, and its delay.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    /// Its number.
    pub number: u64,
    /// When it was to be issued.
    pub scheduled: Nanos,
    /// When it was issued.
    pub issued: Nanos,
    /// Whether nothing but the replayer held it back.
    pub is_own: bool,
    /// What delayed it; `None` if the stalls of its loop tell.
    pub cause: Option<Cause>,
    /// Whether others were due or in flight at its issue.
    pub has_company: bool,
}

/// Collects the verdict from the delays of a run, in constant memory.
#[derive(Clone, Debug)]
pub struct Fidelity {
    words: Words,
    /// Delays of requests not held back.
    own: Times,
    /// Delays of requests that waited for the device.
    device: Times,
    perturbed: u64,
    /// Late requests by cause.
    late: [u64; Cause::ALL.len()],
    /// The worst first.
    worst: Vec<Moment>,
    /// Of each loop.
    stalls: Vec<VecDeque<Stall>>,
}

impl Default for Fidelity {
    fn default() -> Self {
        Self::with(Words::REQUESTS)
    }
}

impl Fidelity {
    /// An empty one, with words for what is replayed.
    pub fn with(words: Words) -> Self {
        Self {
            words,
            own: Times::new(),
            device: Times::new(),
            perturbed: 0,
            late: [0; Cause::ALL.len()],
            worst: Vec::new(),
            stalls: Vec::new(),
        }
    }

    /// Adds a stall of a loop. Must precede the requests that it delayed.
    pub fn add_stall(&mut self, issuer: u16, stall: Stall) {
        let issuer = usize::from(issuer);
        if issuer >= self.stalls.len() {
            self.stalls.resize_with(issuer + 1, VecDeque::new);
        }
        let stalls = &mut self.stalls[issuer];
        if stalls.len() == STALLS {
            stalls.pop_front();
        }
        stalls.push_back(stall);
    }

    /// Adds the delay of a request of a loop.
    #[inline]
    pub fn add(&mut self, delay: &Delay, issuer: u16) {
        let late = delay.issued - delay.scheduled;
        self.perturbed += u64::from(delay.cause == Some(Cause::Perturbed));
        if delay.is_own {
            self.own.add(late);
        } else if delay.cause.is_some_and(Cause::is_due_to_device) {
            self.device.add(late);
        }
        if late > LATE {
            let cause = delay.cause.unwrap_or_else(|| self.stall_cause(delay, issuer));
            self.late[cause as usize] += 1;
            self.add_moment(delay, late, cause);
        }
    }

    /// Delays of requests that nothing but the replayer held back.
    pub fn own(&self) -> &Times {
        &self.own
    }

    /// The cause of a delay from its loop's stall at that time.
    fn stall_cause(&self, delay: &Delay, issuer: u16) -> Cause {
        let stalls = self.stalls.get(usize::from(issuer));
        // The stall may have started shortly after the scheduled time.
        let at_that_time =
            stalls.and_then(|stalls| stalls.get(stalls.partition_point(|stall| stall.to <= delay.scheduled)));
        match at_that_time.filter(|stall| stall.from < delay.issued) {
            Some(Stall { activity: Activity::Submitting, .. }) => Cause::Submission,
            Some(Stall { activity: Activity::Reaping, .. }) => Cause::Completions,
            Some(Stall { activity: Activity::Waiting | Activity::Choosing | Activity::Preempted, .. }) => {
                Cause::Descheduled
            }
            None if delay.has_company => Cause::Burst,
            None => Cause::Unknown,
        }
    }

    fn add_moment(&mut self, delay: &Delay, late: Nanos, cause: Cause) {
        let at_s = delay.scheduled.as_secs();
        let moment = Moment { at_s, request: delay.number, late_us: late.0 as f64 / 1e3, cause };
        let is_same = |other: &Moment| (other.at_s - at_s).abs() < MOMENT.as_secs();
        if let Some(same) = self.worst.iter().position(is_same) {
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

    /// The verdict; `None` if no request was issued.
    pub fn verdict(&self, is_complete: bool) -> Option<Verdict> {
        self.verdict_of(is_complete, &UncountedCauses::default())
    }

    /// The same with causes that are not in the rows.
    pub fn verdict_of(&self, is_complete: bool, beside: &UncountedCauses) -> Option<Verdict> {
        if self.own.count() + self.device.count() + self.perturbed == 0 {
            return None;
        }
        let part =
            |times: &Times| Part { requests: times.count(), delay_us: times.quantiles(), within_pct: times.within() };
        let (own, device) = (part(&self.own), part(&self.device));
        let faithful = self.perturbed == 0 && own.within_pct.is_none_or(|within| within.us50 >= FAITHFUL_PCT);
        let late: Vec<Late> = Cause::ALL
            .into_iter()
            .map(|cause| Late { cause, requests: self.late[cause as usize] })
            .filter(|late| late.requests > 0)
            .collect();
        let sentence = self.sentence(is_complete, &own, &device, &late, beside);
        let (worst, remedies) = (self.worst.clone(), Vec::new());
        Some(Verdict { faithful: Some(faithful), kept_times: None, sentence, own, device, late, worst, remedies })
    }

    fn sentence(
        &self,
        is_complete: bool,
        own: &Part,
        device: &Part,
        late: &[Late],
        beside: &UncountedCauses,
    ) -> String {
        let Words { plural, other } = self.words;
        let subject = if is_complete { "This replay" } else { "As far as it went, this replay" };
        let mut text = match &own.within_pct {
            _ if self.perturbed > 0 => format!("{subject} was not faithful: issue times were perturbed on purpose"),
            None if self.words == Words::REQUESTS => {
                format!("{subject} was faithful: only the device delayed requests")
            }
            None => format!("{subject} was faithful: no {plural} had times of their own to keep"),
            Some(within) if within.us50 >= FAITHFUL_PCT => {
                let of =
                    if device.requests > 0 { format!("the {plural} not held back") } else { format!("its {plural}") };
                let (in_10, in_50) = (percent(within.us10 / 100.0), percent(within.us50 / 100.0));
                format!(
                    "{subject} was faithful: {in_10} of {of} were issued within 10 µs of their scheduled time, {in_50} \
                     within 50 µs"
                )
            }
            Some(within) => {
                let mut text = format!(
                    "{subject} was not faithful: only {} of the {plural} not held back were issued within 50 µs of their \
                     scheduled time, less than {FAITHFUL_PCT:.0} %",
                    percent(within.us50 / 100.0)
                );
                if let Some(other_io) = &beside.other_io {
                    text += &format!("; other programs used the disk: {other_io}");
                }
                let own = || late.iter().filter(|late| !late.cause.is_due_to_device());
                if let Some(most) = own().max_by_key(|late| late.requests) {
                    let all: u64 = own().map(|late| late.requests).sum();
                    let (most_often, all) = (count(most.requests), count(all));
                    let why = match &beside.burst {
                        Some(burst) if most.cause == Cause::Burst => phrase(burst),
                        _ => most.cause.phrase().to_owned(),
                    };
                    text += &format!("; {most_often} of {all} late {plural} because {why}");
                }
                text
            }
        };
        let by_device: u64 = late.iter().filter(|late| late.cause.is_due_to_device()).map(|late| late.requests).sum();
        let share = by_device as f64 / (own.requests + device.requests) as f64;
        if share >= 0.001 && own.requests > 0 {
            text += &format!(
                ". {other} delayed {} of the {plural} by more than 50 µs, which is part of the result",
                percent(share)
            );
        }
        text + "."
    }
}

/// The verdict on a run in which requests wait for completions of others. If the loop sees a completion late, the next
/// request is due late as well, and has no delay: so such a run is faithful only if the loop could see completions at all
/// times but a few percent.
pub fn of_closed_loop(verdict: Verdict, blind: Nanos, elapsed: Nanos) -> Verdict {
    let share = blind.as_secs() / elapsed.as_secs();
    if !verdict.is_faithful() || share.is_nan() || share * 100.0 <= 100.0 - FAITHFUL_PCT {
        return verdict;
    }
    let sentence = format!(
        "This replay was not faithful: for {} of its time the replayer did not run while requests were in flight, so that it \
         saw their completions, and issued the next requests, late.",
        percent(share)
    );
    Verdict { faithful: Some(false), sentence, ..verdict }
}

/// The clause that follows "because".
fn phrase(burst: &Burst) -> String {
    let demand = if burst.to > burst.from {
        format!(" within {}, {}/s", span((burst.to - burst.from).as_secs()), rounded(burst.demand()))
    } else {
        " at once".to_owned()
    };
    format!(
        "the load demands {} requests{demand}, at {:.3} s; this loop reaches about {}/s",
        count(burst.requests),
        burst.from.as_secs(),
        rounded(burst.reached())
    )
}

/// A rate with two digits.
fn rounded(rate: f64) -> String {
    let unit = 10_f64.powf((rate.log10().floor() - 1.0).max(0.0));
    count(((rate / unit).round() * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: i64 = 1000;

    /// A request scheduled at second `number`.
    fn late(number: u64, late_us: i64, cause: Option<Cause>) -> Delay {
        let scheduled = Nanos(number as i64 * 1_000_000_000);
        let issued = scheduled + Nanos(late_us * US);
        let is_own = matches!(cause, None | Some(Cause::Input));
        Delay { number, scheduled, issued, is_own, cause, has_company: false }
    }

    fn verdict(delays: impl IntoIterator<Item = Delay>) -> Verdict {
        let mut fidelity = Fidelity::default();
        delays.into_iter().for_each(|delay| fidelity.add(&delay, 0));
        fidelity.verdict(true).unwrap()
    }

    #[test]
    fn requests_issued_on_time_make_a_faithful_replay() {
        let found = verdict((0..100).map(|i| late(i, if i < 3 { 20 } else { 2 }, None)));
        assert!(found.is_faithful() && found.late.is_empty() && found.worst.is_empty());
        let expected = "This replay was faithful: 97.0 % of its requests were issued within 10 µs of their scheduled time, \
                        100 % within 50 µs.";
        assert_eq!(found.sentence, expected);
    }

    #[test]
    fn delays_by_the_device_do_not_count_against_the_replayer() {
        let reason = |i| if i % 2 == 0 { Some(Cause::Depth) } else { None };
        let found = verdict((0..100).map(|i| late(i, if i % 2 == 0 { 5000 } else { 2 }, reason(i))));
        assert!(found.is_faithful(), "{found:?}");
        assert_eq!((found.own.requests, found.device.requests), (50, 50));
        assert_eq!(found.own.within_pct.unwrap().us50, 100.0);
        assert_eq!(found.device.within_pct.unwrap().us100, 0.0);
        assert_eq!(found.device.delay_us.unwrap().max, 5000.0, "{found:?}");
        assert_eq!(found.late, [Late { cause: Cause::Depth, requests: 50 }]);
        assert!(found.sentence.contains("The device itself delayed 50.0 %"), "{}", found.sentence);
        assert_eq!(verdict([late(0, 900, Some(Cause::Overlap))]).worst[0].cause, Cause::Overlap);
    }

    #[test]
    fn a_fake_closed_loop_keeps_its_times_by_the_same_rule() {
        for (blind, kept) in [(4, true), (6, false)] {
            let found = of_closed_loop(verdict([late(0, 0, Some(Cause::Depth))]), Nanos(blind), Nanos(100)).of_fake();
            assert_eq!((found.faithful, found.kept_times), (None, Some(kept)));
            assert_eq!(found.unfaithful().is_none(), kept);
            let why = "for 6.0 % of its time the replayer did not run while requests were in flight";
            assert!(found.unfaithful().is_none_or(|text| text.starts_with(why)), "{found:?}");
            assert!(found.sentence.starts_with("none, as the result is fake"), "{found:?}");
        }
    }

    #[test]
    fn an_unfaithful_verdict_names_the_most_frequent_cause() {
        let every_tenth = |i| if i % 10 == 0 { late(i, 300, Some(Cause::Input)) } else { late(i, 1, None) };
        let found = verdict((0..100).map(every_tenth));
        assert!(!found.is_faithful());
        assert!(found.sentence.contains("was not faithful: only 90.0 %"), "{}", found.sentence);
        assert!(found.sentence.contains("10 of 10 late requests because the load was not read"), "{}", found.sentence);
    }

    #[test]
    fn stalls_of_the_loop_are_causes_of_delays() {
        let activities = [
            (Activity::Submitting, Cause::Submission),
            (Activity::Reaping, Cause::Completions),
            (Activity::Waiting, Cause::Descheduled),
            (Activity::Preempted, Cause::Descheduled),
        ];
        let mut fidelity = Fidelity::default();
        for (i, (activity, _)) in (1..).zip(activities) {
            let at = Nanos(i * 1_000_000_000);
            fidelity.add_stall(0, Stall { from: at - Nanos(50 * US), to: at + Nanos(400 * US), activity });
        }
        (1..=4).for_each(|i| fidelity.add(&late(i, 401 + i as i64, None), 0));
        fidelity.add(&late(5, 100, None), 0);
        fidelity.add(&Delay { has_company: true, ..late(6, 90, None) }, 0);
        let worst: Vec<_> = fidelity.verdict(true).unwrap().worst.iter().map(|m| (m.request, m.cause)).collect();
        let [submission, completions, waiting, preempted] = activities.map(|(_, cause)| cause);
        let expected =
            [(4, preempted), (3, waiting), (2, completions), (1, submission), (5, Cause::Unknown), (6, Cause::Burst)];
        assert_eq!(worst, expected);
    }

    #[test]
    fn a_stall_of_a_loop_delays_no_requests_of_another() {
        let mut fidelity = Fidelity::default();
        let at = Nanos(1_000_000_000);
        fidelity.add_stall(1, Stall { from: at, to: at + Nanos(400 * US), activity: Activity::Submitting });
        (0..3).for_each(|issuer| fidelity.add(&late(1, 100, None), issuer));
        let found = fidelity.verdict(true).unwrap().late;
        let expected = [(Cause::Submission, 1), (Cause::Unknown, 2)].map(|(cause, requests)| Late { cause, requests });
        assert_eq!(found.len(), 2);
        assert!(expected.iter().all(|part| found.contains(part)), "{found:?}");
    }

    #[test]
    fn late_requests_close_together_are_one_moment() {
        let mut fidelity = Fidelity::default();
        // A thousand seconds, each with three late requests close together; the second is the worst.
        for i in 0..1000_u64 {
            for (part, late_us) in [(0, 100), (1, 200 + i as i64), (2, 150)] {
                let at = Nanos((i * 1_000_000_000 + part * 1_000_000) as i64);
                let delay = late(i * 3 + part, 0, None);
                fidelity.add(&Delay { scheduled: at, issued: at + Nanos(late_us * US), ..delay }, 0);
            }
        }
        let worst = fidelity.verdict(true).unwrap().worst;
        assert!(worst.iter().map(|m| m.request).eq((990..1000).rev().map(|i| i * 3 + 1)), "{worst:?}");
    }

    #[test]
    fn verdicts_of_perturbed_incomplete_and_empty_runs() {
        let found = verdict([late(0, 1000, Some(Cause::Perturbed)), late(1, 0, None)]);
        assert!(!found.is_faithful() && found.sentence.contains("perturbed on purpose"), "{found:?}");
        let mut fidelity = Fidelity::default();
        assert_eq!(fidelity.verdict(true), None);
        fidelity.add(&late(0, 1, None), 0);
        assert!(fidelity.verdict(false).unwrap().sentence.starts_with("As far as it went, this replay was faithful"));
    }
}
