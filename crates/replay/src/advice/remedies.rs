//! What to try where a run was not faithful: in order, only what applies to the run and its machine, each with what it
//! costs.

use std::path::Path;

use iosonar_trace::human;
use iosonar_trace::run_info::{Cause, Remedy, Verdict};

use crate::config::issuing::Wait;
use crate::config::options::Options;
use crate::host::contention::Contention;
use crate::host::isolation::Part;

/// What is known of run and machine.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// As the run was done, the way to wait settled.
    pub options: &'a Options,
    /// Who else wanted the processors before the run.
    pub contention: Option<&'a Contention>,
    /// The percentage of the processors' time that the host took during the run.
    pub stolen_pct: f64,
    /// Processors that may be used.
    pub processors: usize,
    /// Whether the machine may be arranged.
    pub is_root: bool,
    /// The first target that is a regular file.
    pub file: Option<&'a Path>,
    /// Whether that file has places without storage.
    pub has_holes: bool,
}

/// What to try, the most promising first; nothing for a run that was faithful, or was not meant to be.
pub fn remedies(verdict: &Verdict, facts: &Facts<'_>) -> Vec<Remedy> {
    let options = facts.options;
    if verdict.faithful || options.modes.fake().is_some() {
        return Vec::new();
    }
    let mut causes: Vec<_> = verdict.late.iter().filter(|late| !late.cause.is_due_to_device()).collect();
    causes.sort_by_key(|late| std::cmp::Reverse(late.requests));
    let all: u64 = causes.iter().map(|late| late.requests).sum();
    let mut found: Vec<Remedy> = Vec::new();
    // A cause of one late request in ten is not what made the run unfaithful.
    for late in causes.iter().filter(|late| late.requests * 10 >= all) {
        for remedy in against(late.cause, facts) {
            if !found.contains(&remedy) {
                found.push(remedy);
            }
        }
    }
    if options.time.speedup > 1.0 && options.keeps_times() {
        found.push(remedy(format!("a smaller --speedup than {}", options.time.speedup), "the run takes longer"));
    }
    found.push(remedy(
        "iosonar replay --calibrate, which tells up to which rate this machine is faithful at best",
        "up to a minute",
    ));
    found
}

fn remedy(what: impl Into<String>, costs: &str) -> Remedy {
    Remedy { what: what.into(), costs: costs.into() }
}

fn against(cause: Cause, facts: &Facts<'_>) -> Vec<Remedy> {
    match cause {
        Cause::Descheduled => for_a_processor(facts),
        Cause::Submission => for_quick_calls(facts),
        Cause::Completions | Cause::Burst | Cause::Unknown => arranged(facts).into_iter().collect(),
        Cause::Input => for_input(facts.options),
        Cause::CompletionLog => {
            vec![remedy("--output on another disk than the target's, or in /dev/shm", "memory, in /dev/shm")]
        }
        _ => Vec::new(),
    }
}

fn for_a_processor(facts: &Facts<'_>) -> Vec<Remedy> {
    let Facts { options, contention, processors, stolen_pct, .. } = *facts;
    let mut found = Vec::new();
    if !options.issuing.has_priority() && processors > 1 {
        found.push(remedy(
            format!("--isolate=priority, which puts the loop before other programs{}", as_root(facts)),
            "other programs wait meanwhile",
        ));
    }
    let others = contention.map_or(0.0, |contention| contention.ready);
    if others >= 0.5 {
        found.push(remedy(
            format!(
                "end other programs first: {} of their threads wanted a processor before the run (see `top`)",
                human::rate(others)
            ),
            "nothing",
        ));
    }
    match options.wait() {
        Wait::Spin | Wait::Inline if others >= processors as f64 => found.push(remedy(
            "--wait hybrid, which sleeps between requests and is preempted less",
            "of 100 requests, some 5 more go out 10 to 50 µs late",
        )),
        Wait::Hybrid | Wait::Sleep if others < processors as f64 && processors > 1 => {
            found.push(remedy("--wait spin, which has no waking up to do", "a processor for as long as the run takes"));
        }
        _ => {}
    }
    found.extend(arranged(facts));
    if stolen_pct >= 1.0 {
        found.push(remedy(
            format!(
                "a machine whose processors are its own: the host took {} of the time from this one",
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

fn for_quick_calls(facts: &Facts<'_>) -> Vec<Remedy> {
    let mut found = Vec::new();
    if let (Some(file), true) = (facts.file, facts.has_holes) {
        found.push(remedy(
            format!("iosonar device wipe {}, as writes to its holes have to allocate space first", file.display()),
            "the time to write all of it",
        ));
    }
    if facts.processors >= 4 && !facts.options.method.ring.sqpoll && facts.options.method.is_ring() {
        found.push(remedy("--sqpoll, by which a thread of the kernel submits", "a second processor"));
    }
    if let Some(file) = facts.file {
        found.push(remedy(
            format!(
                "a loop device over the file as target (`losetup --direct-io=on --show -f {}`){}",
                file.display(),
                as_root(facts)
            ),
            "a thread of the kernel passes requests on, which counts as latency",
        ));
        found.push(remedy(
            "a block device as target, as the file system's part of each call is left out then",
            "what the device holds is overwritten",
        ));
    }
    found.extend(arranged(facts));
    found
}

fn for_input(options: &Options) -> Vec<Remedy> {
    let mut found = Vec::new();
    if options.edit.is_some() {
        found.push(remedy("apply --edit before the run, by `iosonar edit`", "disk space for another load"));
    } else if options.load.extension().is_none_or(|ending| ending != "parquet") {
        found.push(remedy("`iosonar convert` the load to Parquet first, which is read faster", "disk space"));
    }
    found.push(remedy(
        format!("a larger --ahead than {}, and --buffers for it", options.issuing.ahead),
        "memory for the data of these requests",
    ));
    found
}

/// All that can be arranged, if it was not.
fn arranged(facts: &Facts<'_>) -> Option<Remedy> {
    let is_missing = facts.processors > 1 && !facts.options.issuing.isolate.contains(&Part::Processors);
    is_missing.then(|| {
        remedy(
            format!(
                "--isolate, which gives the loop a processor without kernel workers and interrupts{}",
                as_root(facts)
            ),
            "these go to the other processors while the run lasts",
        )
    })
}

fn as_root(facts: &Facts<'_>) -> &'static str {
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

    /// The beginnings of what is to be tried.
    fn tried(late: &[(Cause, u64)], facts: &Facts<'_>) -> Vec<String> {
        let found = remedies(&verdict(late), facts);
        assert!(found.iter().all(|remedy| !remedy.costs.is_empty()), "{found:?}");
        found.iter().map(|remedy| remedy.what.split([',', ':']).next().unwrap().to_owned()).collect()
    }

    #[test]
    fn nothing_is_to_be_tried_after_a_faithful_run() {
        let options = options();
        let faithful = Verdict { faithful: true, ..verdict(&[(Cause::Descheduled, 9)]) };
        assert_eq!(remedies(&faithful, &facts(&options)), []);
    }

    #[test]
    fn a_loop_without_a_processor_is_given_one() {
        let options = options();
        let crowd = Contention { processors: 2, ready: 3.25, stolen_pct: 0.0 };
        let late = [(Cause::Depth, 900), (Cause::Descheduled, 95), (Cause::Submission, 5)];
        let found = tried(&late, &Facts { contention: Some(&crowd), stolen_pct: 4.0, ..facts(&options) });
        let expected = [
            "--isolate=priority",
            "end other programs first",
            "--wait hybrid",
            "--isolate",
            "a machine whose processors are its own",
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
    fn what_was_done_is_not_advised_again() {
        let options = Options::of("a.parquet -t b -o c --wait hybrid --speedup 10 --isolate");
        let late = [(Cause::Descheduled, 50), (Cause::Submission, 50)];
        let found = tried(&late, &Facts { processors: 4, ..facts(&options) });
        let expected = ["--wait spin", "--sqpoll", "a smaller --speedup than 10", "iosonar replay --calibrate"];
        assert_eq!(found, expected);
    }

    #[test]
    fn long_calls_on_a_file_are_shortened_by_what_the_file_lacks() {
        let options = options();
        let on_file = Facts { file: Some(Path::new("x.img")), has_holes: true, ..facts(&options) };
        let found = tried(&[(Cause::Submission, 7)], &on_file);
        let expected = [
            "iosonar device wipe x.img",
            "a loop device over the file as target (`losetup --direct-io=on --show -f x.img`)",
            "a block device as target",
            "--isolate",
            "iosonar replay --calibrate",
        ];
        assert_eq!(found, expected);
        let device = tried(&[(Cause::Submission, 7)], &facts(&options));
        assert_eq!(device, ["--isolate", "iosonar replay --calibrate"]);
    }

    #[test]
    fn a_load_that_is_read_too_slowly_is_made_easier_to_read() {
        let text = Options::of("a.load.gz -t b -o c");
        let found = tried(&[(Cause::Input, 7), (Cause::CompletionLog, 7)], &facts(&text));
        let expected = [
            "`iosonar convert` the load to Parquet first",
            "a larger --ahead than 4096",
            "--output on another disk than the target's",
            "iosonar replay --calibrate",
        ];
        assert_eq!(found, expected);
    }
}
