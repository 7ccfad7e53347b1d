//! What `--issuers` can be combined with, and how many issuing loops the machine has processors for.

use iosonar_pacing::depth::DepthScope;
use iosonar_pacing::wait::Wait;
use iosonar_pacing::{Error, Result};
use iosonar_trace::human;

use crate::config::options::Options;
use crate::issuer::Think;
use crate::issuer::conflicts::Policy;

/// Refuses several issuing loops where the run needs one. The error says what to do instead.
pub fn check(options: &Options) -> Result<()> {
    let issuing = &options.issuing;
    if issuing.issuers == 1 {
        return Ok(());
    }
    let needs_one = [
        (
            options.modes.closed == Some(Think::Inferred),
            "with --closed=dependencies requests wait for others of any address, in one issuing loop: omit --issuers",
        ),
        (
            options.method.simulate.is_some(),
            "a simulated device must see all requests, in one issuing loop: omit --issuers",
        ),
        (
            options.overlaps.conflicts == Policy::Ordering,
            "--conflicts ordering holds everything behind a request, which takes one issuing loop: omit --issuers, or use \
             --conflicts partial, which keeps overlapping requests in order",
        ),
        (
            *options.pacing.wait == Some(Wait::Inline),
            "with --wait inline the only issuing loop prepares and records requests: omit --issuers, or use another --wait",
        ),
        (
            options.pacing.isolate.iter().any(|part| part.is_for_one_thread()),
            "--isolate has one processor for one issuing loop: omit --issuers, or use --isolate=priority,awake",
        ),
    ];
    if let Some((_, why)) = needs_one.into_iter().find(|(is_needed, _)| *is_needed) {
        return Err(Error::Usage(why.into()));
    }
    let (depth, issuers) = (*options.pacing.depth, issuing.issuers);
    if depth.requests < issuers && (depth.scope == DepthScope::All || options.is_closed()) {
        return Err(Error::Usage(format!(
            "each of {issuers} issuing loops needs a request in flight: use --depth {issuers} or more, or at most --issuers {}",
            depth.requests
        )));
    }
    Ok(())
}

/// The number of issuing loops: at most one less than there are processors, if requests have deadlines and --wait does not
/// say how the loops wait. With a warning if that is fewer than --issuers. More loops would have to take turns with each
/// other and with the kernel's work for the device: see bench/results/issuers.md.
pub fn limit(options: &Options, processors: usize, has_deadlines: bool) -> (usize, Option<String>) {
    let (issuers, most) = (options.issuing.issuers, processors.saturating_sub(1).max(1));
    if issuers <= most || !has_deadlines || options.pacing.wait.is_some() {
        return (issuers, None);
    }
    let warning = format!(
        "--issuers {issuers} was reduced to {most}: with {}, more issuing loops would issue requests late; --wait hybrid \
         keeps all {issuers}",
        human::counted(processors as u64, "processor")
    );
    (most, Some(warning))
}

/// Refuses several loops for clients or a program whose requests of different loops may overlap, unless that is allowed or,
/// for clients, each target has a loop. `options` were checked.
pub fn check_overlaps(options: &Options, targets: usize, only_reads: bool) -> Result<()> {
    let (issuers, has_program) = (options.issuing.issuers, options.program.program.is_some());
    if issuers == 1 || !options.is_closed() || only_reads || options.overlaps.conflicts == Policy::Allow {
        return Ok(());
    }
    let (who, remedy) = match has_program {
        true => ("the streams of a program", "omit --issuers"),
        false if targets >= issuers => return Ok(()),
        false if targets > 1 => ("the clients of --closed", "use at most a loop for each target"),
        false => ("the clients of --closed", "omit --issuers"),
    };
    Err(Error::Usage(format!(
        "{who} are divided among {issuers} issuing loops, which do not keep their overlapping requests apart: add --conflicts \
         allow, as fio does, or {remedy}"
    )))
}

/// Why a program has fewer loops than --issuers.
pub fn unused(wanted: usize, issuers: usize) -> String {
    format!(
        "--issuers {wanted} was reduced to {issuers}: an instance of a stream stays in one loop, and so do all scripts, and \
         streams linked by `after`; use more instances (in fio numjobs)"
    )
}

/// The depth of a loop: what the program's closed streams in it need, and at least 1, with an even share of the rest; if all
/// that is more than the depth, a share in proportion.
pub fn share_of(depth: usize, issuer: usize, issuers: usize, at_once: &[u64]) -> usize {
    let need = |loop_number: usize| u128::from(at_once.get(loop_number).copied().unwrap_or(1).max(1));
    let needed: u128 = (0..issuers).map(need).sum();
    if let Some(rest) = (depth as u128).checked_sub(needed) {
        let rest = rest as usize;
        return need(issuer) as usize + rest / issuers + usize::from(issuer < rest % issuers);
    }
    // Beside one for each loop, rounded so that the sum is the depth.
    let rest = depth.saturating_sub(issuers) as u128;
    let upto =
        |end: usize| (0..end).map(|each| need(each) - 1).sum::<u128>() * rest / (needed - issuers as u128).max(1);
    1 + (upto(issuer + 1) - upto(issuer)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_leave_a_processor_free_unless_wait_is_set() {
        let limited = |words: &str, processors, has_deadlines| {
            let options = Options::of(&format!("a -t b -o c {words}"));
            let (issuers, warning) = limit(&options, processors, has_deadlines);
            assert_eq!(warning.is_some(), issuers != options.issuing.issuers);
            issuers
        };
        assert_eq!([1, 2, 3, 8, 9].map(|processors| limited("--issuers 8", processors, true)), [1, 1, 2, 7, 8]);
        assert_eq!(limited("--issuers 8 --wait hybrid", 2, true), 8);
        assert_eq!(limited("--issuers 8 --asap", 2, false), 8);
        assert_eq!(limited("", 1, true), 1);
    }

    fn check_words(words: &str) -> Result<()> {
        check(&Options::of(&format!("a -t b -o c {words}")))
    }

    #[test]
    fn what_needs_one_loop_is_refused_with_several_and_not_with_one() {
        for (words, remedy) in [
            ("--closed=dependencies", "omit --issuers"),
            ("--closed --depth each=2", "--depth 3 or more, or at most --issuers 2"),
            ("--simulate constant=1ms", "omit --issuers"),
            ("--simulate constant=1ms --virtual-time", "omit --issuers"),
            ("--conflicts ordering", "--conflicts partial"),
            ("--wait inline", "another --wait"),
            ("--isolate", "--isolate=priority,awake"),
            ("--isolate=workers", "--isolate=priority,awake"),
            ("--depth 2", "--depth 3 or more, or at most --issuers 2"),
        ] {
            let error = check_words(&format!("{words} --issuers 3")).unwrap_err().to_string();
            assert!(error.contains(remedy), "{words}: {error}");
            check_words(words).unwrap();
            check_words(&format!("{words} --issuers 1")).unwrap();
        }
        for words in [
            "",
            "--closed",
            "--closed=no-think",
            "--program tpcb",
            "--asap",
            "--isolate=priority,awake",
            "--depth each=1",
            "--depth 3",
            "--verify paranoia",
        ] {
            check_words(&format!("{words} --issuers 3")).unwrap();
        }
        for wrong in ["0", "65", "-1", "two"] {
            assert!(Options::parse(["a", "-t", "b", "-o", "c", "--issuers", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn overlaps_of_closed_loads_are_allowed_or_refused() {
        let check = |words: &str, targets, only_reads| {
            check_overlaps(&Options::of(&format!("a -t b -o c --issuers 2 {words}")), targets, only_reads)
        };
        for (words, targets, only_reads, remedy) in [
            ("--closed", 1, false, Some("--conflicts allow, as fio does, or omit --issuers")),
            ("--closed=no-think", 1, false, Some("--conflicts allow")),
            ("--program tpcb", 1, false, Some("--conflicts allow")),
            ("--program tpcb", 2, false, Some("--conflicts allow")),
            ("--closed", 2, false, None),
            ("--closed", 1, true, None),
            ("--program tpcb", 1, true, None),
            ("--closed --conflicts allow", 1, false, None),
            ("--asap", 1, false, None),
        ] {
            match (check(words, targets, only_reads), remedy) {
                (Ok(()), None) => {}
                (Err(why), Some(remedy)) => assert!(why.to_string().contains(remedy), "{words}: {why}"),
                (outcome, _) => panic!("{words}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn the_shares_of_a_depth_add_up_to_it() {
        let shares = |depth, issuers, at_once: &[u64]| -> Vec<usize> {
            (0..issuers).map(|issuer| share_of(depth, issuer, issuers, at_once)).collect()
        };
        assert_eq!(shares(8, 3, &[]), [3, 3, 2]);
        assert_eq!(shares(512, 2, &[300, 10]), [401, 111]);
        assert_eq!(shares(700, 2, &[600, 100]), [600, 100]);
        assert_eq!(shares(70, 2, &[600, 100]), [59, 11]);
        assert_eq!(shares(3, 3, &[1, 100, 0]), [1, 1, 1]);
        assert_eq!(shares(6, 3, &[1, 100, 0]), [1, 4, 1]);
        assert_eq!(shares(8, 2, &[u64::MAX, u64::MAX]), [4, 4]);
        assert_eq!(shares(7, 3, &[10, 10, 10]), [2, 2, 3]);
        assert_eq!(shares(4, 2, &[0, 0]), [2, 2]);
    }
}
