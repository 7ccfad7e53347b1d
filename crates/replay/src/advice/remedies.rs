//! Remedies for a run that was not faithful: those that apply to the run and its machine, in order, each with its cost.

use std::path::Path;

use iosonar_pacing::demand::Burst;
use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::isolation::IsolationPart;
use iosonar_pacing::wait::Wait;
use iosonar_trace::run_info::{Cause, Remedy, Verdict};
use iosonar_trace::{Nanos, human};

use crate::config::options::Options;
use crate::config::plan::Plan;

/// Facts about run and machine.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The options, and what was decided.
    pub plan: &'a Plan,
    /// Contention for the processors before the run.
    pub contention: Option<&'a Contention>,
    /// Percentage of processor time stolen by the hypervisor during the run.
    pub stolen_pct: f64,
    /// Processors that the program may use.
    pub processors: usize,
    /// Whether the program runs as root.
    pub is_root: bool,
    /// The first target that is a regular file.
    pub file: Option<&'a Path>,
    /// Whether that file was sparse before the run.
    pub has_holes: bool,
    /// What its disk received beside the replay, if that is much.
    pub other_io: Option<&'a OtherIo>,
    /// The burst of the load that is the farthest beyond the loop.
    pub burst: Option<Burst>,
    /// The duration of the run.
    pub elapsed_s: f64,
    /// Whether a disk is below that file, whose completions kernel workers of the file system handle.
    pub has_disk: bool,
}

/// Remedies, the most promising first; none for a run that was faithful or perturbed on purpose.
pub fn remedies(verdict: &Verdict, facts: &Facts<'_>) -> Vec<Remedy> {
    let options = &facts.plan.options;
    if verdict.is_faithful() || options.pacing.fake().is_some() {
        return Vec::new();
    }
    let mut causes: Vec<_> = verdict.late.iter().filter(|late| !late.cause.is_due_to_device()).collect();
    causes.sort_by_key(|late| std::cmp::Reverse(late.requests));
    let all: u64 = causes.iter().map(|late| late.requests).sum();
    let mut found: Vec<Remedy> = Vec::new();
    // Ignore causes of less than a tenth of the late requests.
    for late in causes.iter().filter(|late| late.requests * 10 >= all) {
        for remedy in for_cause(late.cause, facts) {
            if !found.contains(&remedy) {
                found.push(remedy);
            }
        }
    }
    if *options.pacing.speedup > 1.0 && options.keeps_times() {
        found.push(remedy(format!("a smaller --speedup than {}", *options.pacing.speedup), "the run takes longer"));
    }
    if let Some(other_io) = facts.other_io {
        found.insert(0, other_io.remedy());
    }
    if found.is_empty() {
        found.push(calibration());
    }
    // What costs nothing is tried first.
    found.sort_by_key(|remedy| remedy.costs != FREE);
    found
}

/// The costs of what can always be tried.
const FREE: &str = "nothing";

/// A target without a file system, whose part of each call takes time, and whose kernel workers preempt the loop.
const BLOCK_DEVICE: &str =
    "a block device as the target, without a file system's part of each call and its kernel workers for completions";

/// The loop without a device: it shows nothing about the calls and completions of a target.
fn calibration() -> Remedy {
    remedy(
        "iosonar replay --calibrate, which measures the highest rate of the issuing loop alone, without a device",
        "up to a minute",
    )
}

/// I/O of a disk beside that of the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherIo {
    /// The disk.
    pub disk: String,
    /// The requests that it received.
    pub received: u64,
    /// Those of the replay.
    pub replayed: u64,
}

impl OtherIo {
    /// As a clause.
    pub fn clause(&self) -> String {
        let Self { disk, received, replayed } = self;
        format!(
            "the disk {disk} received {} requests for {} of the replay",
            human::count(*received),
            human::count(*replayed)
        )
    }

    fn remedy(&self) -> Remedy {
        remedy(
            format!("wait until {0} is quiet: `iosonar record --device /dev/{0}` shows what uses it", self.disk),
            FREE,
        )
    }
}

fn remedy(what: impl Into<String>, costs: &str) -> Remedy {
    Remedy { what: what.into(), costs: costs.into() }
}

fn for_cause(cause: Cause, facts: &Facts<'_>) -> Vec<Remedy> {
    match cause {
        Cause::Descheduled | Cause::Backlog => for_preemption(facts),
        Cause::Submission => for_slow_submission(facts),
        Cause::Completions => isolation(facts).into_iter().collect(),
        Cause::Burst if facts.burst.is_some() => facts.burst.iter().flat_map(|burst| for_burst(burst, facts)).collect(),
        Cause::Burst | Cause::Unknown => isolation(facts).into_iter().chain([calibration()]).collect(),
        Cause::Input => for_late_input(&facts.plan.options),
        Cause::CompletionLog => {
            vec![remedy("--output on another disk than the target's, or in /dev/shm", "memory, in /dev/shm")]
        }
        _ => Vec::new(),
    }
}

/// The load demands more than any loop can issue.
fn for_burst(burst: &Burst, facts: &Facts<'_>) -> Vec<Remedy> {
    let options = &facts.plan.options;
    let mut found = Vec::new();
    if options.has_load() {
        found.push(remedy(
            "`sync` before the recording, if the page cache wrote back in the burst what programs had written before \
             (docs/recording.md)",
            "another recording",
        ));
    }
    let of_load = |at: Nanos| (options.time.window.start.as_secs() + options.pacing.time_in_load(at).as_secs()) * 1e3;
    let (rest, costs) = if burst.from.as_secs() < facts.elapsed_s / 2.0 {
        (format!("--start {:.3}, after the burst", (of_load(burst.to).floor() + 1.0) / 1e3), "what is before it")
    } else {
        (format!("--end {:.3}, before the burst", of_load(burst.from).floor() / 1e3), "what is after it")
    };
    found.push(remedy(rest, &format!("{costs} is not replayed")));
    if facts.processors >= 4 && facts.plan.issuers == 1 {
        found.push(remedy("--issuers 2, so that two loops issue requests", "another processor"));
    }
    found
}

fn for_preemption(facts: &Facts<'_>) -> Vec<Remedy> {
    let Facts { plan, contention, processors, stolen_pct, .. } = *facts;
    let mut found = Vec::new();
    if !plan.options.pacing.has_priority() && processors > 1 {
        found.push(remedy(
            format!(
                "--isolate=priority, which gives the issuing loop priority over other programs{}",
                root_note(facts)
            ),
            "other programs wait during the run",
        ));
    }
    let ready = contention.map_or(0.0, |contention| contention.ready);
    if ready >= 0.5 {
        found.push(remedy(
            format!(
                "stop other programs first: on average {} of their threads were runnable before the run (see `top`)",
                human::rate(ready)
            ),
            FREE,
        ));
    }
    match plan.waiting.wait {
        Wait::Spin | Wait::Inline if ready >= processors as f64 => found.push(remedy(
            "--wait hybrid, which sleeps between requests and is preempted less",
            "about 5 % more of the requests are issued 10 to 50 µs late",
        )),
        Wait::Hybrid | Wait::Sleep if ready < processors as f64 && processors > 1 => {
            found.push(remedy("--wait spin, which needs no wake-up", "occupies a processor during the run"));
        }
        _ => {}
    }
    found.extend(isolation(facts));
    if facts.has_disk {
        found.push(remedy(BLOCK_DEVICE, "the data on that device is overwritten"));
    }
    if stolen_pct >= 1.0 {
        found.push(remedy(
            format!(
                "a machine with dedicated processors: the hypervisor stole {} of the processor time",
                human::percent(stolen_pct / 100.0)
            ),
            "another machine",
        ));
    }
    if processors <= 2 {
        found.push(remedy(format!("a machine with more processors than {processors}"), "another machine"));
    }
    found
}

fn for_slow_submission(facts: &Facts<'_>) -> Vec<Remedy> {
    let mut found = Vec::new();
    if let (Some(file), true) = (facts.file, facts.has_holes) {
        found.push(remedy(
            format!("iosonar device wipe {}, as writes to its holes must first allocate space", file.display()),
            "the time to write the whole file",
        ));
    }
    if facts.processors >= 4 && !facts.plan.options.method.ring.sqpoll && facts.plan.options.method.is_ring() {
        found.push(remedy("--sqpoll, which submits in a kernel thread", "a second processor"));
    }
    if let Some(file) = facts.file {
        found.push(remedy(
            format!(
                "a loop device on the file as the target (`losetup --direct-io=on --show -f {}`){}",
                file.display(),
                root_note(facts)
            ),
            "a kernel thread forwards requests, which adds to their latency",
        ));
        found.push(remedy(BLOCK_DEVICE, "the data on that device is overwritten"));
    }
    found.extend(isolation(facts));
    let layer = if facts.file.is_some() { "file system" } else { "driver" };
    found.push(remedy(
        format!("to accept the delay: submission calls of this {layer} take that much processor time on this machine"),
        "the latencies are not only the device's",
    ));
    found
}

fn for_late_input(options: &Options) -> Vec<Remedy> {
    let mut found = Vec::new();
    if options.edit.is_some() {
        found.push(remedy("apply --edit before the run, with `iosonar edit`", "disk space for another load"));
    } else if options.load.as_ref().and_then(|load| load.extension()).is_none_or(|extension| extension != "parquet") {
        found.push(remedy("`iosonar convert` the load to Parquet first, which is read faster", "disk space"));
    }
    found.push(remedy(
        format!("a larger --ahead than {}, and --buffers to match", options.issuing.ahead),
        "memory for the data of these requests",
    ));
    found
}

/// `--isolate`, if the run was without it.
fn isolation(facts: &Facts<'_>) -> Option<Remedy> {
    let is_missing = facts.processors > 1 && !facts.plan.options.pacing.isolate.contains(&IsolationPart::Processors);
    is_missing.then(|| {
        remedy(
            format!(
                "--isolate, which gives the issuing loop a processor without kernel workers and interrupts{}",
                root_note(facts)
            ),
            "the other processors handle these during the run",
        )
    })
}

fn root_note(facts: &Facts<'_>) -> &'static str {
    if facts.is_root { "" } else { " (needs root)" }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::run_info::{Late, Part as Share};

    use super::*;

    fn verdict(late: &[(Cause, u64)]) -> Verdict {
        let none = Share { requests: 0, delay_us: None, within_pct: None };
        Verdict {
            kept_times: None,
            faithful: Some(false),
            sentence: String::new(),
            own: none,
            device: none,
            late: late.iter().map(|&(cause, requests)| Late { cause, requests }).collect(),
            worst: Vec::new(),
            remedies: Vec::new(),
        }
    }

    fn plan() -> Plan {
        Plan::of("a.parquet -t b -o c --wait spin")
    }

    fn facts(plan: &Plan) -> Facts<'_> {
        let (contention, file) = (None, None);
        Facts {
            plan,
            contention,
            stolen_pct: 0.0,
            processors: 2,
            is_root: true,
            file,
            has_holes: false,
            other_io: None,
            burst: None,
            elapsed_s: 10.0,
            has_disk: false,
        }
    }

    /// The remedies, up to the first comma or colon.
    fn brief_remedies(late: &[(Cause, u64)], facts: &Facts<'_>) -> Vec<String> {
        let found = remedies(&verdict(late), facts);
        assert!(found.iter().all(|remedy| !remedy.costs.is_empty()), "{found:?}");
        found.iter().map(|remedy| remedy.what.split([',', ':']).next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_faithful_run_needs_no_remedy() {
        let plan = plan();
        let faithful = Verdict { faithful: Some(true), ..verdict(&[(Cause::Descheduled, 9)]) };
        assert_eq!(remedies(&faithful, &facts(&plan)), []);
    }

    #[test]
    fn a_preempted_loop_needs_a_processor() {
        let plan = plan();
        let contention = Contention { processors: 2, ready: 3.25, stolen_pct: 0.0 };
        let late = [(Cause::Depth, 900), (Cause::Descheduled, 95), (Cause::Submission, 5)];
        let found = brief_remedies(&late, &Facts { contention: Some(&contention), stolen_pct: 4.0, ..facts(&plan) });
        let expected = [
            "stop other programs first",
            "--isolate=priority",
            "--wait hybrid",
            "--isolate",
            "a machine with dedicated processors",
            "a machine with more processors than 2",
        ];
        assert_eq!(found, expected);
        let alone = remedies(&verdict(&late), &Facts { is_root: false, processors: 8, ..facts(&plan) });
        let whats: Vec<_> = alone.iter().map(|remedy| remedy.what.as_str()).collect();
        assert!(whats[0].starts_with("--isolate=priority") && whats[0].ends_with("(needs root)"), "{whats:?}");
        assert!(!whats.iter().any(|what| what.contains("hybrid") || what.contains("machine with")), "{whats:?}");
    }

    #[test]
    fn a_burst_beyond_the_loop_is_left_out_or_not_recorded() {
        let plan = Plan::of("a.parquet -t b -o c --wait spin --start 3 --speedup 2");
        let burst = |from| Burst::of(Nanos(from), Nanos(from + 1_900_000), 1503, Nanos(2400));
        let early = Facts { burst: Some(burst(1_409_400_000)), ..facts(&plan) };
        let found = brief_remedies(&[(Cause::Burst, 7)], &early);
        let expected = ["`sync` before the recording", "--start 5.823", "a smaller --speedup than 2"];
        assert_eq!(found, expected);
        let late = Facts { burst: Some(burst(9_409_400_000)), ..early };
        assert_eq!(brief_remedies(&[(Cause::Burst, 7)], &late)[1], "--end 21.818");
    }

    #[test]
    fn other_io_of_the_disk_is_the_first_remedy() {
        let plan = plan();
        let contention = Contention { processors: 2, ready: 1.4, stolen_pct: 0.0 };
        let other_io = OtherIo { disk: "vda".into(), received: 62_192, replayed: 6414 };
        let facts = Facts { contention: Some(&contention), other_io: Some(&other_io), ..facts(&plan) };
        let found = brief_remedies(&[(Cause::Descheduled, 7)], &facts);
        assert_eq!(found[..3], ["wait until vda is quiet", "stop other programs first", "--isolate=priority"]);
    }

    #[test]
    fn remedies_already_in_use_are_left_out() {
        let plan = Plan::of("a.parquet -t b -o c --wait hybrid --speedup 10 --isolate");
        let late = [(Cause::Descheduled, 50), (Cause::Submission, 50)];
        let found = brief_remedies(&late, &Facts { processors: 4, ..facts(&plan) });
        let expected = ["--wait spin", "--sqpoll", "to accept the delay", "a smaller --speedup than 10"];
        assert_eq!(found, expected);
    }

    #[test]
    fn slow_submission_to_a_file_has_remedies_for_files() {
        let plan = plan();
        let on_file = Facts { file: Some(Path::new("x.img")), has_holes: true, ..facts(&plan) };
        let found = brief_remedies(&[(Cause::Submission, 7)], &on_file);
        let expected = [
            "iosonar device wipe x.img",
            "a loop device on the file as the target (`losetup --direct-io=on --show -f x.img`)",
            "a block device as the target",
            "--isolate",
            "to accept the delay",
        ];
        assert_eq!(found, expected);
        let device = brief_remedies(&[(Cause::Submission, 7)], &facts(&plan));
        assert_eq!(device, ["--isolate", "to accept the delay"]);
    }

    #[test]
    fn late_input_needs_a_faster_load_or_more_read_ahead() {
        let text = Plan::of("a.load.gz -t b -o c");
        let found = brief_remedies(&[(Cause::Input, 7), (Cause::CompletionLog, 7)], &facts(&text));
        let expected = [
            "`iosonar convert` the load to Parquet first",
            "a larger --ahead than 4096",
            "--output on another disk than the target's",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn against_workers_of_a_file_system_a_block_device_helps() {
        let plan = plan();
        let on_disk = Facts { file: Some(Path::new("x.img")), has_disk: true, ..facts(&plan) };
        let is_block_device = |what: &String| what == "a block device as the target";
        assert!(brief_remedies(&[(Cause::Descheduled, 7)], &on_disk).iter().any(is_block_device));
        let in_memory = Facts { has_disk: false, ..on_disk };
        assert!(!brief_remedies(&[(Cause::Descheduled, 7)], &in_memory).iter().any(is_block_device));
        let both = brief_remedies(&[(Cause::Descheduled, 7), (Cause::Submission, 7)], &on_disk);
        assert_eq!(both.iter().filter(|what| is_block_device(what)).count(), 1, "{both:?}");
    }

    #[test]
    fn only_a_loop_that_is_the_cause_or_last_resort_is_calibrated() {
        let plan = plan();
        let says_calibrate = |cause, facts: &Facts<'_>| {
            let found = remedies(&verdict(&[(cause, 7)]), facts);
            let calibrate = found.iter().filter(|remedy| remedy.what.contains("--calibrate"));
            calibrate.inspect(|remedy| assert!(remedy.what.contains("without a device"), "{remedy:?}")).count() > 0
        };
        for cause in Cause::ALL.into_iter().filter(|cause| !cause.is_due_to_device() && *cause != Cause::Perturbed) {
            let is_of_loop = matches!(cause, Cause::Burst | Cause::Unknown);
            assert_eq!(says_calibrate(cause, &facts(&plan)), is_of_loop, "{cause:?}");
        }
        let isolated = Plan::of("a.parquet -t b -o c --wait spin --isolate");
        assert!(says_calibrate(Cause::Descheduled, &Facts { processors: 8, ..facts(&isolated) }));
    }
}
