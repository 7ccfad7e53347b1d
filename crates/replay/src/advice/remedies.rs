//! Remedies for a run that was not faithful: those that apply to the run and its machine, in order, each with its cost.

use std::path::Path;

use iosonar_trace::human;
use iosonar_trace::run_info::{Cause, Remedy, Verdict};

use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::host::contention::Contention;
use crate::host::isolation::IsolationPart;

/// Facts about run and machine.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The options, with `wait` resolved.
    pub options: &'a Options,
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
    /// Whether that file is sparse.
    pub has_holes: bool,
}

/// Remedies, the most promising first; none for a run that was faithful or perturbed on purpose.
pub fn remedies(verdict: &Verdict, facts: &Facts<'_>) -> Vec<Remedy> {
    let options = facts.options;
    if verdict.faithful || options.modes.fake().is_some() {
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
    if options.time.speedup > 1.0 && options.keeps_times() {
        found.push(remedy(format!("a smaller --speedup than {}", options.time.speedup), "the run takes longer"));
    }
    found.push(remedy(
        "iosonar replay --calibrate, to measure the highest rate that this machine replays faithfully",
        "up to a minute",
    ));
    found
}

fn remedy(what: impl Into<String>, costs: &str) -> Remedy {
    Remedy { what: what.into(), costs: costs.into() }
}

fn for_cause(cause: Cause, facts: &Facts<'_>) -> Vec<Remedy> {
    match cause {
        Cause::Descheduled | Cause::Backlog => for_preemption(facts),
        Cause::Submission => for_slow_submission(facts),
        Cause::Completions | Cause::Burst | Cause::Unknown => isolation(facts).into_iter().collect(),
        Cause::Input => for_late_input(facts.options),
        Cause::CompletionLog => {
            vec![remedy("--output on another disk than the target's, or in /dev/shm", "memory, in /dev/shm")]
        }
        _ => Vec::new(),
    }
}

fn for_preemption(facts: &Facts<'_>) -> Vec<Remedy> {
    let Facts { options, contention, processors, stolen_pct, .. } = *facts;
    let mut found = Vec::new();
    if !options.issuing.has_priority() && processors > 1 {
        found.push(remedy(
            format!("--isolate=priority, which gives the loop priority over other programs{}", root_note(facts)),
            "other programs wait during the run",
        ));
    }
    let ready = contention.map_or(0.0, |contention| contention.ready);
    if ready >= 0.5 {
        found.push(remedy(
            format!(
                "stop other programs first: {} of their threads were running before the run (see `top`)",
                human::rate(ready)
            ),
            "nothing",
        ));
    }
    match options.wait() {
        Wait::Spin | Wait::Inline if ready >= processors as f64 => found.push(remedy(
            "--wait hybrid, which sleeps between requests and is preempted less",
            "about 5 more of 100 requests are issued 10 to 50 µs late",
        )),
        Wait::Hybrid | Wait::Sleep if ready < processors as f64 && processors > 1 => {
            found.push(remedy("--wait spin, which needs no wake-up", "occupies a processor during the run"));
        }
        _ => {}
    }
    found.extend(isolation(facts));
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
    if facts.processors >= 4 && !facts.options.method.ring.sqpoll && facts.options.method.is_ring() {
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
        found.push(remedy(
            "a block device as the target, which avoids the file system's part of each call",
            "the data on that device is overwritten",
        ));
    }
    found.extend(isolation(facts));
    found
}

fn for_late_input(options: &Options) -> Vec<Remedy> {
    let mut found = Vec::new();
    if options.edit.is_some() {
        found.push(remedy("apply --edit before the run, with `iosonar edit`", "disk space for another load"));
    } else if options.load.extension().is_none_or(|extension| extension != "parquet") {
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
    let is_missing = facts.processors > 1 && !facts.options.issuing.isolate.contains(&IsolationPart::Processors);
    is_missing.then(|| {
        remedy(
            format!(
                "--isolate, which gives the loop a processor without kernel workers and interrupts{}",
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
    use super::*;
    use iosonar_trace::run_info::{Late, Part as Share};

    fn verdict(late: &[(Cause, u64)]) -> Verdict {
        let none = Share { requests: 0, delay_us: None, within_pct: None };
        Verdict {
            faithful: false,
            sentence: String::new(),
            own: none,
            device: none,
            late: late.iter().map(|&(cause, requests)| Late { cause, requests }).collect(),
            worst: Vec::new(),
            remedies: Vec::new(),
        }
    }

    fn options() -> Options {
        Options::of("a.parquet -t b -o c --wait spin")
    }

    fn facts(options: &Options) -> Facts<'_> {
        let (contention, file) = (None, None);
        Facts { options, contention, stolen_pct: 0.0, processors: 2, is_root: true, file, has_holes: false }
    }

    /// The remedies, up to the first comma or colon.
    fn brief_remedies(late: &[(Cause, u64)], facts: &Facts<'_>) -> Vec<String> {
        let found = remedies(&verdict(late), facts);
        assert!(found.iter().all(|remedy| !remedy.costs.is_empty()), "{found:?}");
        found.iter().map(|remedy| remedy.what.split([',', ':']).next().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_faithful_run_needs_no_remedy() {
        let options = options();
        let faithful = Verdict { faithful: true, ..verdict(&[(Cause::Descheduled, 9)]) };
        assert_eq!(remedies(&faithful, &facts(&options)), []);
    }

    #[test]
    fn a_preempted_loop_needs_a_processor() {
        let options = options();
        let contention = Contention { processors: 2, ready: 3.25, stolen_pct: 0.0 };
        let late = [(Cause::Depth, 900), (Cause::Descheduled, 95), (Cause::Submission, 5)];
        let found = brief_remedies(&late, &Facts { contention: Some(&contention), stolen_pct: 4.0, ..facts(&options) });
        let expected = [
            "--isolate=priority",
            "stop other programs first",
            "--wait hybrid",
            "--isolate",
            "a machine with dedicated processors",
            "a machine with more processors than 2",
            "iosonar replay --calibrate",
        ];
        assert_eq!(found, expected);
        let alone = remedies(&verdict(&late), &Facts { is_root: false, processors: 8, ..facts(&options) });
        let whats: Vec<_> = alone.iter().map(|remedy| remedy.what.as_str()).collect();
        assert!(whats[0].starts_with("--isolate=priority") && whats[0].ends_with("(needs root)"), "{whats:?}");
        assert!(!whats.iter().any(|what| what.contains("hybrid") || what.contains("machine with")), "{whats:?}");
    }

    #[test]
    fn remedies_already_in_use_are_left_out() {
        let options = Options::of("a.parquet -t b -o c --wait hybrid --speedup 10 --isolate");
        let late = [(Cause::Descheduled, 50), (Cause::Submission, 50)];
        let found = brief_remedies(&late, &Facts { processors: 4, ..facts(&options) });
        let expected = ["--wait spin", "--sqpoll", "a smaller --speedup than 10", "iosonar replay --calibrate"];
        assert_eq!(found, expected);
    }

    #[test]
    fn slow_submission_to_a_file_has_remedies_for_files() {
        let options = options();
        let on_file = Facts { file: Some(Path::new("x.img")), has_holes: true, ..facts(&options) };
        let found = brief_remedies(&[(Cause::Submission, 7)], &on_file);
        let expected = [
            "iosonar device wipe x.img",
            "a loop device on the file as the target (`losetup --direct-io=on --show -f x.img`)",
            "a block device as the target",
            "--isolate",
            "iosonar replay --calibrate",
        ];
        assert_eq!(found, expected);
        let device = brief_remedies(&[(Cause::Submission, 7)], &facts(&options));
        assert_eq!(device, ["--isolate", "iosonar replay --calibrate"]);
    }

    #[test]
    fn late_input_needs_a_faster_load_or_more_read_ahead() {
        let text = Options::of("a.load.gz -t b -o c");
        let found = brief_remedies(&[(Cause::Input, 7), (Cause::CompletionLog, 7)], &facts(&text));
        let expected = [
            "`iosonar convert` the load to Parquet first",
            "a larger --ahead than 4096",
            "--output on another disk than the target's",
            "iosonar replay --calibrate",
        ];
        assert_eq!(found, expected);
    }
}
