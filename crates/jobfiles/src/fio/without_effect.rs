//! Options of a job that have no effect beside its other options: fio says nothing of them, a conversion names each.

use std::collections::BTreeMap;

use super::job::{Job, shown};
use super::pace::end_of_time;
use super::place::file_names;
use super::requests::{DISCARD, READ, WRITE, directions};
use crate::conversion::{Ignored, Place};

/// What rules ask of a job.
struct Facts<'a> {
    job: &'a Job,
    is_random: bool,
    is_trimwrite: bool,
    /// The shares of reads, writes and discards.
    weights: [f64; 3],
    has_rate: bool,
    files: usize,
    has_names: bool,
    is_timed: bool,
    is_first: bool,
}

type Rule = (&'static [&'static str], fn(&Facts<'_>) -> bool, &'static str);

/// Options, when they have no effect, and why.
const RULES: &[Rule] = &[
    (&["rwmixread", "rwmixwrite"], |f| !f.is_mix(), "only rw=rw and rw=randrw mix reads and writes"),
    (&["rwmixread", "rwmixwrite"], |f| f.is_mix() && f.has_rate, "the rates of reads and of writes are their shares"),
    (&["rwmixread"], |f| f.is_mix() && f.is_before("rwmixread", "rwmixwrite"), "rwmixwrite comes later"),
    (&["rwmixwrite"], |f| f.is_mix() && f.is_before("rwmixwrite", "rwmixread"), "rwmixread comes later"),
    (&["ba", "random_distribution", "percentage_random", "norandommap"], |f| !f.is_random, "positions are sequential"),
    (&["norandommap"], |f| f.is_random && f.has_law(), "random_distribution has no map of blocks"),
    (&["ba"], |f| f.is_random && f.is_sequential_by_percentage(), "percentage_random=0: positions are sequential"),
    (&["bs"], |f| f.job.has("bssplit"), "bssplit has the sizes"),
    (&["bs"], |f| f.job.has("bsrange") && !f.job.has("bssplit"), "bsrange has the sizes"),
    (&["bsrange"], |f| f.is_before("bsrange", "bssplit"), "bssplit comes later"),
    (&["rate", "rate_iops"], |f| !f.has_rate, "it is the rate of no direction of rw"),
    (&["rate_process"], |f| !f.has_rate, "the job has no rate"),
    (&["thinktime_blocks"], |f| !f.is_on("thinktime"), "the job has no thinktime"),
    (&["time_based"], |f| !f.is_timed, "it has no runtime; fio says so, and goes on without it"),
    (&["loops", "io_size", "number_ios"], |f| f.is_timed, "time_based: the runtime ends the job"),
    (&["random_generator"], |f| !f.is_random, "positions are sequential"),
    (&["random_generator"], |f| f.is_random && !f.is_lfsr(), "the random numbers of the run are set by --seed"),
    (&["offset_increment"], |f| !f.has_clones(), "numjobs is 1"),
    (&["nrfiles"], |f| f.has_names, "the files have names"),
    (&["filename_format"], |f| f.job.has("filename"), "filename has the names"),
    (&["directory"], |f| f.has_names && f.is_raw(), "the job has no file in it"),
    (&["file_service_type"], |f| f.files == 1, "the job has one file"),
    (&["stonewall"], |f| f.is_first, "no job comes before"),
    (&["fsync", "fdatasync"], |f| f.is_trimwrite, "fio does not flush with rw=trimwrite"),
    (
        &[
            "fsync",
            "fdatasync",
            "sync",
            "writefua",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "buffer_pattern",
            "zero_buffers",
        ],
        |f| f.weights[WRITE] == 0.0,
        "the job has no writes",
    ),
    (&["buffer_compress_chunk"], |f| !f.has_shares(), "the job has no buffer_compress_percentage or dedupe_percentage"),
    (&["zero_buffers"], |f| f.has_shares(), "random data has the shares that are asked for"),
    (&["zero_buffers"], |f| f.job.has("buffer_pattern") && !f.has_shares(), "buffer_pattern has the data"),
    (
        &["buffer_pattern"],
        |f| f.is_on("dedupe_percentage") && !f.is_on("buffer_compress_percentage"),
        "random data has the shares that are asked for",
    ),
    (&["do_verify"], |f| !f.is_on("verify"), "the job has no verify"),
    (&["direct"], |f| f.is_before("direct", "buffered"), "buffered comes later"),
    (&["buffered"], |f| f.is_before("buffered", "direct"), "direct comes later"),
];

impl<'a> Facts<'a> {
    fn new(job: &'a Job, is_first: bool) -> Result<Self, String> {
        let (directions, _) = directions(job)?;
        let weights = directions.weights;
        let rate = |text: &str| job.number_of(text);
        let (bytes, requests) = (job.triple("rate", rate)?, job.triple("rate_iops", rate)?);
        let is_rate = |rate: Option<u64>| rate.is_some_and(|rate| rate > 0);
        let has_rate = [READ, WRITE, DISCARD]
            .into_iter()
            .any(|way| weights[way] > 0.0 && (is_rate(bytes[way]) || is_rate(requests[way])));
        let names = file_names(job)?;
        Ok(Self {
            job,
            is_random: directions.is_random,
            is_trimwrite: directions.is_trimwrite,
            weights,
            has_rate,
            files: names.as_ref().map_or(job.count("nrfiles")?.unwrap_or(1) as usize, Vec::len),
            has_names: names.is_some(),
            is_timed: end_of_time(job)?.is_some(),
            is_first,
        })
    }

    fn is_mix(&self) -> bool {
        self.job
            .text("rw")
            .is_some_and(|rw| ["rw", "readwrite", "randrw"].contains(&rw.split(':').next().unwrap_or(rw)))
    }

    fn is_on(&self, option: &'static str) -> bool {
        self.job.setting(option).is_some_and(|setting| !super::job::is_off(setting))
    }

    fn has_shares(&self) -> bool {
        self.is_on("buffer_compress_percentage") || self.is_on("dedupe_percentage")
    }

    fn is_before(&self, one: &'static str, other: &'static str) -> bool {
        self.job.has(one) && self.job.has(other) && !self.job.is_later(one, other)
    }

    fn has_law(&self) -> bool {
        self.job.text("random_distribution").is_some_and(|text| !text.starts_with("random"))
    }

    fn is_lfsr(&self) -> bool {
        self.job.text("random_generator") == Some("lfsr")
    }

    fn is_sequential_by_percentage(&self) -> bool {
        self.job.text("percentage_random") == Some("0")
    }

    fn has_clones(&self) -> bool {
        self.job.number("numjobs").is_ok_and(|clones| clones.is_some_and(|clones| clones > 1))
    }

    fn is_raw(&self) -> bool {
        matches!(self.job.text("ioengine"), Some("rbd" | "nbd" | "libiscsi"))
    }
}

/// The options without effect, each with the jobs in which it has none. Jobs that cannot be converted are left out.
pub fn without_effect(jobs: &[Job]) -> Vec<Ignored> {
    let mut found = BTreeMap::<(Place, String, &'static str), Vec<&str>>::new();
    for (number, job) in jobs.iter().enumerate() {
        let Ok(facts) = Facts::new(job, number == 0) else { continue };
        for (options, has_none, why) in RULES {
            let set = options.iter().filter_map(|option| job.setting(option)).filter(|set| !super::job::is_off(set));
            for setting in set.filter(|_| has_none(&facts)) {
                let key = (setting.place.clone(), shown(setting), *why);
                found.entry(key).or_default().push(&job.name);
            }
        }
    }
    let ignored = found.into_iter().map(|((place, option, why), names)| {
        let names = if names.len() > 3 { format!("{} jobs", names.len()) } else { names.join(", ") };
        Ignored { place, option, reason: format!("no effect in {names}: {why}") }
    });
    ignored.collect()
}

#[cfg(test)]
mod tests {
    use super::super::options::OPTIONS;
    use super::super::tests::converted;
    use super::*;
    use crate::conversion::options::Treatment;

    /// Options of a job, and the reason that the first of them has.
    #[test]
    fn each_option_without_effect_is_named_with_its_reason() {
        for (options, why) in [
            ("rwmixwrite=20 rw=randwrite", "only rw=rw and rw=randrw mix"),
            ("rwmixread=90 rw=randread", "only rw=rw and rw=randrw mix"),
            ("rwmixread=90 rw=randrw rate_iops=50", "the rates of reads and of writes are their shares"),
            ("rwmixread=90 rw=randrw rwmixwrite=20", "rwmixwrite comes later"),
            ("blockalign=8k rw=read", "positions are sequential"),
            ("ba=8k rw=randread percentage_random=0", "percentage_random=0"),
            ("percentage_random=30 rw=read", "positions are sequential"),
            ("random_distribution=zipf:1.2 rw=write", "positions are sequential"),
            ("norandommap rw=read", "positions are sequential"),
            ("norandommap rw=randread random_distribution=zipf:1.2", "random_distribution has no map"),
            ("bs=8k bssplit=4k/50:8k/50", "bssplit has the sizes"),
            ("bs=8k bsrange=4k-8k", "bsrange has the sizes"),
            ("bsrange=4k-8k bssplit=4k/50:8k/50", "bssplit comes later"),
            ("rate=,1m rw=read", "it is the rate of no direction"),
            ("rate_process=poisson", "the job has no rate"),
            ("thinktime_blocks=8", "the job has no thinktime"),
            ("time_based", "it has no runtime"),
            ("loops=3 time_based runtime=10", "the runtime ends the job"),
            ("io_size=2m time_based runtime=10", "the runtime ends the job"),
            ("number_ios=7 time_based runtime=10", "the runtime ends the job"),
            ("random_generator=lfsr rw=read", "positions are sequential"),
            ("random_generator=tausworthe64 rw=randread", "the random numbers of the run are set by --seed"),
            ("offset_increment=1m", "numjobs is 1"),
            ("nrfiles=4 filename=/dev/sdb", "the files have names"),
            ("filename_format=x filename=/dev/sdb", "filename has the names"),
            ("file_service_type=random", "the job has one file"),
            ("stonewall", "no job comes before"),
            ("fsync=4 rw=randread", "the job has no writes"),
            ("fdatasync=4 rw=trimwrite", "fio does not flush with rw=trimwrite"),
            ("sync=1 rw=read", "the job has no writes"),
            ("writefua=1 rw=read", "the job has no writes"),
            ("dedupe_percentage=20 rw=read", "the job has no writes"),
            ("buffer_compress_percentage=20 rw=read", "the job has no writes"),
            ("do_verify=1 rw=write", "the job has no verify"),
            ("direct=1 buffered=1", "buffered comes later"),
            ("flow=0", "it is off"),
        ] {
            let first = options.split(' ').next().unwrap();
            let ignored = converted(&format!("[a]\nsize=1m\n{}\n", options.replace(' ', "\n"))).ignored;
            let named = ignored.iter().filter(|ignored| ignored.option == first && ignored.place.line == 3);
            let reasons: Vec<_> = named.map(|ignored| &ignored.reason).collect();
            assert!(reasons.len() == 1 && reasons[0].contains(why), "{options}: {ignored:?}");
        }
    }

    #[test]
    fn an_option_with_effect_is_not_named() {
        let jobs = "[a]\nrw=randrw\nrwmixread=70\nba=8k\nsize=1m\nfsync=4\nbssplit=4k/50:8k/50\n[b]\nstonewall\nrw=read\nsize=1m\n";
        assert_eq!(converted(jobs).ignored, []);
    }

    #[test]
    fn an_option_is_named_with_the_jobs_it_has_no_effect_in() {
        let jobs = "[global]\nsize=1m\nrwmixread=70\n[a]\nrw=randrw\n[b]\nrw=read\n[c]\nrw=write\n";
        let ignored = converted(jobs).ignored;
        assert_eq!(
            ignored.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["job.fio:3: rwmixread=70: no effect in b, c: only rw=rw and rw=randrw mix reads and writes"]
        );
    }

    #[test]
    fn an_option_that_is_replaced_or_of_no_job_is_named() {
        let ignored = converted("[a]\nsize=1m\nbs=4k\nbs=8k\n[global]\nbs=16k\n").ignored;
        assert_eq!(
            ignored.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "job.fio:3: bs=4k: no effect: a later line replaces it",
                "job.fio:6: bs=16k: no effect: no job below it has it"
            ]
        );
    }

    /// Every option that rules name is converted: the others are named anyway.
    #[test]
    fn rules_are_for_converted_options() {
        for option in RULES.iter().flat_map(|(options, ..)| *options) {
            let known = OPTIONS.iter().find(|known| known.names[0] == *option);
            assert!(known.is_some_and(|known| known.treatment == Treatment::Converted), "{option}");
        }
    }
}
