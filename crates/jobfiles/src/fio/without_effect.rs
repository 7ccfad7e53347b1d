//! Options of a job that have no effect beside its other options: fio says nothing of them, a conversion names each.

use std::collections::BTreeMap;

use super::engine::is_buffered;
use super::job::{Job, shown};
use super::options::find;
use super::pace::end_of_time;
use super::phases::Phases;
use super::place::{file_names, places};
use super::requests::{DISCARD, READ, WRITE, directions};
use super::streams::streams;
use super::syntax::Setting;
use crate::conversion::options::Treatment;
use crate::conversion::{Devices, Ignored, Origin, Place, StreamText};

/// The reason of those that no rule explains.
const SAME: &str = "the job makes the same requests without it";

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

/// Options that exceed what one job does.
const OF_THE_FILE: &[&str] = &["stonewall", "wait_for", "name", "description", "kb_base", "ioengine"];

/// Off is not what fio does without these.
const ON_WITHOUT: &[&str] = &["rwmixread", "rwmixwrite", "percentage_random", "buffered", "do_verify"];

/// fio's defaults: an option with this value needs no note that it has no effect.
const DEFAULTS: &[(&str, &[&str])] = &[
    ("rw", &["read"]),
    ("bs", &["4k", "4096"]),
    ("rwmixread", &["50"]),
    ("rwmixwrite", &["50"]),
    ("percentage_random", &["100"]),
    ("random_distribution", &["random"]),
    ("random_generator", &["tausworthe"]),
    ("io_submit_mode", &["inline"]),
    ("rate_process", &["linear"]),
    ("file_service_type", &["roundrobin"]),
    ("iodepth", &["1"]),
    ("thinktime_blocks", &["1"]),
    ("numjobs", &["1"]),
    ("nrfiles", &["1"]),
    ("loops", &["1"]),
    ("do_verify", &["1"]),
    ("buffered", &["1"]),
];

/// Whether fio does the same without the option, whatever the rest of the job.
fn is_off(name: &str, setting: &Setting) -> bool {
    super::job::is_off(setting) && !ON_WITHOUT.contains(&name)
}

fn is_default(name: &str, setting: &Setting) -> bool {
    let value = setting.value.as_deref().unwrap_or("1");
    is_off(name, setting) || DEFAULTS.iter().any(|(known, values)| *known == name && values.contains(&value))
}

type Meaning = (String, Vec<StreamText>, Vec<String>, Vec<(String, String)>, bool);

/// All that a job alone is in a program, to compare it with the same job without an option.
fn meaning(job: &Job) -> Result<Meaning, String> {
    let (mut devices, mut notes) = (Devices::default(), Vec::new());
    let places = places(job, &mut devices)?;
    let (sentence, mut streams) = streams(job, &places, &devices, &mut Phases::default(), &mut notes)?;
    streams.iter_mut().for_each(|stream| stream.origin = Origin::default());
    Ok((sentence, streams, notes, devices.texts(), is_buffered(job)))
}

/// The options without which the job is the same.
fn unchanged(job: &Job) -> Vec<(&'static str, &Setting)> {
    let alone = job.without(&["stonewall", "wait_for"]);
    let Ok(whole) = meaning(&alone) else { return Vec::new() };
    let may_have_none = job.options().filter(|(name, setting)| {
        let is_converted = find(name).is_some_and(|option| option.treatment == Treatment::Converted);
        is_converted && !OF_THE_FILE.contains(name) && !is_default(name, setting)
    });
    may_have_none.filter(|(name, _)| meaning(&alone.without(&[name])).is_ok_and(|other| other == whole)).collect()
}

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
        let rules = RULES.iter().flat_map(|(options, has_none, why)| {
            let set = options.iter().filter_map(|option| Some((*option, job.setting(option)?)));
            set.filter(|(option, set)| !is_off(option, set) && has_none(&facts))
                .map(|(option, set)| (option, set, *why))
        });
        let mut reasons: Vec<_> = rules.collect();
        for (option, set) in unchanged(job) {
            if !reasons.iter().any(|(known, ..)| *known == option) {
                reasons.push((option, set, SAME));
            }
        }
        for (_, set, why) in reasons {
            found.entry((set.place.clone(), shown(set), why)).or_default().push(&job.name);
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
    use crate::conversion::Outside;

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
            ("do_verify=0 rw=write", "the job has no verify"),
            ("rwmixread=0 rw=read", "only rw=rw and rw=randrw mix"),
            ("percentage_random=0 rw=read", "positions are sequential"),
            ("io_submit_mode=offload rw=read", "the job makes the same requests without it"),
            ("io_submit_mode=offload rw=randread ioengine=libaio iodepth=4", "the same requests without it"),
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

    /// Without an option, the program or its notes are others.
    #[test]
    fn no_option_vanishes_without_a_word() {
        let mut vanished = Vec::new();
        let corpus = [
            "[a]\nrw=randrw\nsize=1m\nverify=md5\nrwmixread=20\nba=8k\nbssplit=4k/50:8k/50\nfsync=4\ndo_verify=0\n\
             io_submit_mode=offload\nruntime=5\nramp_time=2\nstartdelay=1\n[b]\nstonewall\nrw=randwrite\nsize=2m\nnumjobs=2\n\
             filename=/dev/sdb\noffset_increment=4m\nio_size=64k\nbuffer_compress_percentage=30\nbuffer_compress_chunk=1k\nsync=1\ndescription=x y\n",
            "[global]\ndo_verify=0\nio_submit_mode=offload\nioengine=libaio\nbuffered=0\nloops=3\ndescription=first\n[a]\n\
             rw=read\nsize=1m\nverify_fatal=1\nrwmixwrite=0\npercentage_random=0\niodepth=8\nrate=1m\nrate_process=poisson\n\
             thinktime_blocks=7\n[b]\nrw=randread\nrandom_distribution=zipf:1.1\nnorandommap\nfilesize=2m\nsize=1m\n\
             number_ios=20\nnrfiles=3\nfile_service_type=random\nfilename_format=x.$filenum\ndirectory=/tmp\noffset=8k\n\
             writefua=1\nzero_buffers\nruntime=9\ntime_based\ndescription=second\n[c]\nsize=1m\ndescription=third\n\
             filename=/dev/sdb\nwait_for=a\niodepth=2\nthinktime=4ms\nrandom_generator=lfsr\n",
        ];
        for source in corpus {
            let (whole, lines) = (converted(source), source.lines().collect::<Vec<_>>());
            for number in (0..lines.len()).filter(|number| !lines[*number].starts_with('[')) {
                let rest: Vec<&str> = (0..lines.len()).map(|n| if n == number { ";" } else { lines[n] }).collect();
                let is_default = ["rw=read"].contains(&lines[number]);
                let other = super::super::convert("job.fio", &(rest.join("\n") + "\n"), &Outside::NOTHING);
                let is_same = other.is_ok_and(|other| (&other.text, &other.meanings) == (&whole.text, &whole.meanings));
                if is_same && !is_default {
                    vanished.push(format!("{}: {}", number + 1, lines[number]));
                }
            }
        }
        assert!(vanished.is_empty(), "{vanished:?}");
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
