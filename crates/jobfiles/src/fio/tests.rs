use super::*;
use crate::program::Program;

mod left_out;

pub fn converted(source: &str) -> Conversion {
    convert("job.fio", source, &Outside::NOTHING).unwrap_or_else(|why| panic!("{source}: {why}"))
}

/// The program of one job, without comments and its first lines.
fn streams(source: &str) -> String {
    let conversion = converted(source);
    Program::parse("job.toml", &conversion.text).unwrap_or_else(|why| panic!("{why}\n{}", conversion.text));
    let lines = conversion.text.lines().skip(2).filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn refused(source: &str) -> String {
    convert("job.fio", source, &Outside::NOTHING).err().unwrap_or_else(|| panic!("{source} was converted"))
}

/// The keys of a stream whose device is `/dev/sdb`, without its name.
fn keys(options: &str) -> String {
    let source = format!("[a]\nfilename=/dev/sdb\nioengine=libaio\ndirect=1\n{}\n", options.replace(' ', "\n"));
    let text = streams(&source);
    text.strip_prefix("[[stream]]\nname = \"a\"\n").unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_job_of_few_options_becomes_a_closed_stream() {
    let text = streams(
        "[global]\nioengine=libaio\ndirect=1\n[job 1]\nrw=randread\nbs=8k\niodepth=32\nsize=1g\nruntime=60\nnorandommap\n",
    );
    let expected = "[devices]\n\"job 1\" = \"1G\"\n[[stream]]\nname = \"job 1\"\nclosed = true\ndepth = 32\nop = \"read\"\nsizes = \"8k\"\n\
                    positions = \"uniform\"\nalign = \"8k\"\nend = \"1m\"\nrequests = 131072";
    assert_eq!(text, expected);
}

#[test]
fn a_rate_becomes_an_open_stream() {
    let text = keys("rw=read rate_iops=500 size=4m");
    assert_eq!(
        text,
        "arrivals = \"uniform rate=500\"\nop = \"read\"\nsizes = \"4k\"\npositions = \"sequential\"\nregion = \"4M\"\nrequests = 1024"
    );
}

/// Options of a job, and what its stream has of them.
#[test]
fn each_option_has_its_meaning() {
    for (options, expected) in [
        ("rw=write size=1m", "op = \"write\""),
        ("rw=trim size=1m", "op = \"discard\""),
        ("rw=randread size=1m", "positions = \"shuffled\""),
        ("rw=randread size=1m norandommap", "positions = \"uniform\""),
        ("rw=randread size=1m ba=512", "positions = \"uniform\"\nalign = \"512B\""),
        ("rw=randrw rwmixread=70 size=1m", "mix = \"read=70,write=30\""),
        ("rw=randrw rwmixwrite=20 size=1m", "mix = \"read=80,write=20\""),
        ("rw=randrw rwmixread=100 size=1m", "op = \"read\""),
        // Sequences of reads and writes are independent.
        ("rw=rw size=1m", "op = \"write\"\nsizes = \"4k\"\npositions = \"sequential\"\nregion = \"1M\"\nweight = 50"),
        ("rw=randrw bs=4k,64k size=1m norandommap", "op = \"write\"\nsizes = \"64k\""),
        ("rw=read bs=1m size=8m", "sizes = \"1M\""),
        ("rw=read bs=4k bsrange=4k-12k size=1m", "sizes = \"4k:1,8k:1,12k:1\""),
        ("rw=read bsrange=4k-12k bs=4k size=1m", "sizes = \"4k:1,8k:1,12k:1\"\nredraw_sizes = true"),
        ("rw=read bssplit=4k/50:10k/50 size=1m", "sizes = \"4k:50,8k:50\""),
        (
            "rw=randread bssplit=8k/50:64k/50 bsrange=4k-32k size=1m",
            "sizes = \"8k:50,32k:50\"\nredraw_sizes = true\npositions = \"random-map\"\nregion",
        ),
        ("rw=randread bssplit=4k/50:8k/50 percentage_random=30 size=1m", "positions = \"random-map random=30%\""),
        ("rw=randread bssplit=4k/50:8k/50 percentage_random=30 norandommap size=1m", "positions = \"runs random=30%\""),
        ("rw=read bssplit=4k/70:64k size=1m", "sizes = \"64k:30,4k:70\""),
        ("rw=randwrite bssplit=4k/100,8k/50:16k/50 size=1m norandommap", "sizes = \"8k:50,16k:50\""),
        ("rw=randread random_distribution=zipf:1.2 size=1m", "positions = \"zipf exponent=1.2 ranks=hashed\""),
        (
            "rw=randread random_distribution=pareto:0.2 size=1m",
            "positions = \"self-similar share=80% space=20% ranks=hashed\"",
        ),
        (
            "rw=randread random_distribution=normal:10 size=1m",
            "positions = \"normal deviation=8.819% placement=hashed\"",
        ),
        ("rw=randread percentage_random=30 size=1m", "positions = \"runs random=30%\""),
        ("rw=randread percentage_random=0 size=1m", "positions = \"sequential\""),
        ("rw=randread:8 size=1m", "positions = \"runs length=8\""),
        ("rw=write:12k size=1m", "positions = \"strided stride=16k pass=same\"\nregion = \"1M\"\nrequests = 64"),
        ("rw=randread random_distribution=zoned:60/10:40/90", "region = \"10%\"\nweight = 60"),
        ("rw=randread random_distribution=zoned:60/10:40/", "region = \"10%..\"\nweight = 40"),
        ("rw=randread random_distribution=zoned_abs:60/4m:40/12m size=16m", "region = \"4M..16M\"\nweight = 40"),
        ("rw=read iodepth=16 size=1m", "depth = 16"),
        ("rw=read thinktime=200 size=1m iodepth=16", "closed = true\nthink = \"constant value=200us\""),
        ("rw=read thinktime=5ms thinktime_blocks=8 iodepth=8 size=1m", "[[stream.step]]\nrepeat = 8\nwait = false"),
        ("rw=read ioengine=sync thinktime=5ms thinktime_blocks=8 iodepth=4 size=1m", "[[stream.step]]\nrepeat = 8"),
        ("rw=read rate=1m size=1m", "arrivals = \"uniform rate=256\""),
        ("rw=read bssplit=4k/50:12k/50 rate=800k size=1m", "arrivals = \"uniform rate=100\""),
        ("rw=randread rate_iops=50 rate_process=poisson size=1m", "arrivals = \"poisson rate=50\""),
        ("rw=randrw rate_iops=30,10 size=1m", "name = \"a-writes\"\narrivals = \"uniform rate=10\""),
        ("rw=read size=1m", "region = \"1M\"\nrequests = 256"),
        ("rw=read size=1m loops=3", "requests = 768"),
        ("rw=read size=1m io_size=64k", "requests = 16"),
        ("rw=read size=1m io_size=50%", "requests = 128"),
        // Measured with fio 3.33: the last request goes beyond io_size, and whole blocks are read in each pass.
        ("rw=read size=1m io_size=12345", "requests = 4"),
        ("rw=read size=1m io_size=100", "requests = 1"),
        ("rw=write size=1m io_size=10000 loops=3", "requests = 8"),
        ("rw=read size=100k io_size=50% bs=3k", "requests = 17"),
        ("rw=read size=10000 io_size=8193", "region = \"12k\"\nrequests = 3"),
        ("rw=read size=10000 io_size=30000", "requests = 8"),
        ("rw=read size=1m io_size=1048577", "requests = 256"),
        ("rw=read size=1m io_size=1052673", "requests = 258"),
        ("rw=randread size=1m io_size=2100000", "requests = 512"),
        ("rw=randread size=1m io_size=2100000 norandommap", "requests = 512"),
        ("rw=randread size=1m io_size=2100000 norandommap ioengine=psync", "requests = 513"),
        ("rw=read size=10000 loops=3", "region = \"12k\"\nrequests = 8"),
        ("rw=randread size=10000 loops=3 norandommap", "requests = 8"),
        ("rw=randread size=1m filesize=10000", "requests = 2"),
        ("rw=read size=1m number_ios=7", "requests = 7"),
        ("rw=read size=10% offset=20%", "region = \"20%..28%\"\npasses = 1"),
        ("rw=read size=1m offset=4m", "region = \"4M..5M\""),
        ("rw=read", "passes = 1"),
        ("rw=read runtime=60 time_based", "end = \"1m\""),
        ("rw=read startdelay=5 ramp_time=10 runtime=60 size=1m", "start = \"5s\"\nend = \"75s\""),
        ("rw=read size=1m numjobs=4", "instances = 4"),
        ("rw=read size=1m numjobs=4 offset_increment=1m", "region = \"4M\"\nown_region = true"),
        (
            "rw=read size=1m numjobs=4 offset_increment=2m",
            "name = \"a.3\"\nclosed = true\nop = \"read\"\nsizes = \"4k\"\npositions = \"sequential\"\nregion = \"6M..7M\"",
        ),
        ("rw=read numjobs=4 offset_increment=25%", "region = \"75%..\""),
        ("rw=write fsync=32 size=1m", "flush_every = 32\nrequests = 256"),
        (
            "rw=randrw fdatasync=10 size=1m",
            "mix = \"read=50,write=50\"\nsizes = \"4k\"\npositions = \"shuffled\"\nregion = \"1M\"\nflush_every = 10\nrequests = 256",
        ),
        (
            "rw=write fsync=1 size=1m rate_iops=100",
            "arrivals = \"uniform rate=100\"\nop = \"write\"\nsizes = \"4k\"\npositions = \"sequential\"\nregion = \"1M\"\nflush_every = 1\nrequests = 256",
        ),
        (
            "rw=randrw rate_iops=30,10 fsync=4 size=1m",
            "name = \"a-writes\"\narrivals = \"uniform rate=10\"\nop = \"write\"\nsizes = \"4k\"\npositions = \"shuffled\"\nregion = \"1M\"\nflush_every = 4\nrequests = 64",
        ),
        ("rw=randread bssplit=4k/50:12k/50 size=1m", "positions = \"random-map\"\nregion = \"1M\"\nbytes = \"1M\""),
        ("rw=randread bsrange=4k-64k", "positions = \"random-map\"\npasses = 1"),
        ("rw=read time_based size=1m", "requests = 256"),
        ("rw=read rate_process=poisson size=1m", "closed = true"),
        ("rw=write sync=1 size=1m", "op = \"fua\""),
        ("rw=write sync=dsync size=1m", "op = \"fua\""),
        (
            "rw=trimwrite size=1m",
            "requests = 512\n[[stream.step]]\nop = \"discard\"\nsizes = \"4k\"\npositions = \"sequential\"\nregion = \"1M\"\n[[stream.step]]\nop = \"write\"\nsame = true",
        ),
        ("rw=read filename=/dev/sdb:/dev/sdc size=1m", "device = \"sdc\"\nregion = \"512k\""),
    ] {
        let source = format!("[a]\nfilename=/dev/sdb\nioengine=libaio\ndirect=1\n{}\n", options.replace(' ', "\n"));
        let text = streams(&source);
        assert!(text.contains(expected), "{options}: {text}");
    }
}

#[test]
fn a_synchronous_engine_has_one_request_at_a_time() {
    let conversion = converted("[a]\nrw=read\nsize=1m\niodepth=32\ndirect=1\n");
    assert!(!conversion.text.contains("depth ="), "{}", conversion.text);
    assert!(conversion.notes[0].contains("psync, fio's default, has one request at a time"), "{:?}", conversion.notes);
    assert!(keys("rw=read size=1m iodepth=32 ioengine=psync io_submit_mode=offload").contains("depth = 32"));
}

/// iometer's file server, on 64 MiB. fio 3.33 made 13,960 requests with its map of blocks, and 5,926 without it.
#[test]
fn a_map_of_blocks_splits_requests_as_in_fio() {
    for (map, requests) in [("", 13_960.0), ("norandommap\n", 5_926.0)] {
        let job = format!(
            "[a]\nfilename=/dev/sdb\nrw=randrw\nrwmixread=80\nsize=64m\nrate_iops=10k\n{map}\
             bssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10\n"
        );
        // Without a rate and its two streams: one map for both, as in fio.
        let conversion = converted(&job.replace("rate_iops=10k\n", ""));
        let text = conversion.text.replace("closed = true", "arrivals = \"uniform rate=10000\"");
        let program = Program::parse("a.toml", &text).unwrap();
        let settings = crate::program::Settings::new(crate::program::Layout::Together(iosonar_trace::Sectors(1 << 25)));
        let all = crate::device::on_a_device(&program, &settings, iosonar_trace::Nanos::MAX);
        assert!((all.len() as f64 / requests - 1.0).abs() < 0.04, "{map}: {}", all.len());
        let bytes: u64 = all.iter().map(|(submitted, _)| submitted.spec.sectors.bytes()).sum();
        assert!((64 << 20..=(64 << 20) + 65536).contains(&bytes) && (!map.is_empty() || bytes == 64 << 20), "{bytes}");
    }
}

#[test]
fn a_flush_after_writes_of_a_mix_is_noted() {
    let notes = |rw: &str| converted(&format!("[a]\nsize=1m\ndirect=1\nrw={rw}\nfsync=4\n")).notes.join("\n");
    assert!(notes("randrw").contains("a flush follows each 4 writes; fio 3.33 repeats it after each read"));
    assert_eq!(notes("write"), "");
}

#[test]
fn several_files_of_a_job_take_turns() {
    let of = |service: &str| streams(&format!("[a]\nnrfiles=4\nfile_service_type={service}\nsize=16m\n"));
    assert!(of("roundrobin").contains("positions = \"files count=4\"\nrequests = 4096"), "{}", of("roundrobin"));
    assert!(of("random:8").contains("positions = \"files count=4 order=random run=8\""));
    assert!(of("roundrobin\nrw=randread").contains("positions = \"files count=4 of=shuffled\""));
    let runs = of("roundrobin\nrw=randread\nbsrange=4k-8k\npercentage_random=9");
    assert!(runs.contains("positions = \"files count=4 of='random-map random=9%'\""), "{runs}");
    assert!(of("sequential").contains("positions = \"sequential\""));
    // Each of three files has a third of the size, in whole sectors.
    let text = streams("[a]\nfilename=x1:x2:x3\nsize=1m\n");
    assert!(text.starts_with("[devices]\n\"x1\" = \"341k\"\n") && text.contains("requests = 255"), "{text}");
}

#[test]
fn disks_of_windows_are_devices_with_an_asynchronous_engine() {
    for (name, device) in [(r"\\.\PhysicalDrive1", "PhysicalDrive1"), (r"E\:", "E:"), (r"D\:\\test.dat", "test.dat")] {
        let size = if name.contains("dat") { "size=1g\n" } else { "" };
        let conversion = converted(&format!("[a]\nfilename={name}\nrw=randread\niodepth=8\n{size}"));
        assert!(conversion.text.contains("depth = 8"), "{name}: {}", conversion.text);
        assert!(conversion.notes[0].contains("windowsaio, fio's default on Windows"), "{:?}", conversion.notes);
        assert!(conversion.meanings[0].contains(device) || size.is_empty(), "{:?}", conversion.meanings);
    }
}

#[test]
fn errors_of_the_program_name_the_option() {
    for (options, why) in [
        ("size=4k\nbs=64k\n", "job.fio:3: bs=64k: "),
        (
            "size=1m\nbs=64k\nrw=randread\nrandom_distribution=zoned:50/1:50/99\n",
            "job.fio:5: random_distribution=zoned:50/1:50/99: ",
        ),
    ] {
        let conversion = convert("job.fio", &format!("[a]\n{options}"), &Outside::NOTHING);
        let found = conversion.and_then(|conversion| conversion.program("job.fio")).unwrap_err();
        assert!(found.starts_with(why) && !found.contains("as a program"), "{found}");
    }
    // On the target of the run, too.
    let conversion = convert("job.fio", "[a]\nfilename=/dev/sdb\nbs=64k\nsize=50%\n", &Outside::NOTHING).unwrap();
    let program = conversion.program("job.fio").unwrap();
    let settings = crate::program::Settings::new(crate::program::Layout::Together(iosonar_trace::Sectors(100)));
    let why = program.place(&settings).err().unwrap();
    assert!(why.starts_with("job.fio:3: bs=64k: "), "{why}");
}

#[test]
fn jobs_without_a_filename_have_files_of_their_own() {
    let text = streams(
        "[global]\nsize=1g\n[a]\nnumjobs=2\n[b]\n[c]\nfilename=x\n[d]\nfilename=x\nsize=2g\n[e]\nfilename=/dev/sdb\n",
    );
    let devices = "[devices]\n\"a\" = \"2G\"\n\"b\" = \"1G\"\n\"x\" = \"2G\"\n\"sdb\" = \"50%\"\n";
    assert!(text.starts_with(devices), "{text}");
    assert!(text.contains("name = \"a\"\ninstances = 2\nclosed = true\nop = \"read\"\nsizes = \"4k\"\npositions = \"sequential\"\ndevice = \"a\"\nown_region = true\nrequests = 262144"), "{text}");
    assert!(text.contains("device = \"x\"\nregion = \"1G\""), "{text}");
}

#[test]
fn global_sections_count_for_the_jobs_below_them() {
    let text = streams("[global]\nsize=1m\nbs=8k\n[a]\n[global]\nbs=16k\n[b]\n[c]\nbs=32k\n");
    let sizes: Vec<&str> = text.lines().filter(|line| line.starts_with("sizes")).collect();
    assert_eq!(sizes, ["sizes = \"8k\"", "sizes = \"16k\"", "sizes = \"32k\""]);
    assert!(streams("[a]\nkb_base=1000\nsize=1mib\nbs=4kib\n").contains("sizes = \"4k\""));
}

#[test]
fn stonewall_and_wait_for_order_the_jobs() {
    let text =
        streams("[global]\nsize=1m\n[a]\n[b]\nnumjobs=2\n[c]\nstonewall\n[d]\n[e]\nstonewall\n[f]\nwait_for=c\n");
    let named = |name: &str| {
        text.split("[[stream]]").find(|part| part.contains(&format!("name = \"{name}\""))).unwrap().to_owned()
    };
    for (name, after) in
        [("c", Some("a, b")), ("d", Some("a, b")), ("e", Some("c, d")), ("f", Some("c, d")), ("a", None), ("b", None)]
    {
        let expected = after.map(|after| format!("after = \"{after}\""));
        assert_eq!(named(name).lines().find(|line| line.starts_with("after")), expected.as_deref(), "{name}: {text}");
    }
    assert!(streams("[a]\nsize=1m\n[a]\nsize=1m\nstonewall\n").contains("name = \"a-2\""));
    assert!(refused("[a]\nsize=1m\nwait_for=x\n").starts_with("job.fio:3: wait_for=x: no job above"));
}

const OPTIONS_HEAD: &str = "\
# Options of job files

<!-- Generated from crates/jobfiles/src (UPDATE_DOCS=1 cargo test -p iosonar-jobfiles docs_have_all_options). -->

What becomes of each option of fio and vdbench when a [job file](../job-files.md) is converted.
";

#[test]
fn docs_have_all_options() {
    use crate::conversion::options::described;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/generated/job-options.md");
    let vdbench = [
        ("General", crate::vdbench::GENERAL),
        ("`sd`", crate::vdbench::SD),
        ("`wd`", crate::vdbench::WD),
        ("`rd`", crate::vdbench::RD),
    ];
    let vdbench = vdbench.map(|(title, options)| format!("### {title}\n\n{}", described(options)));
    let text = format!("{OPTIONS_HEAD}\n## fio\n\n{}\n## vdbench\n\n{}", described(OPTIONS), vdbench.join("\n"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    let found = std::fs::read_to_string(file).unwrap_or_default();
    assert!(found == text, "docs/generated/job-options.md is out of date: run this test with UPDATE_DOCS=1");
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    /// The options that are converted, with values that may fit.
    fn line() -> impl Strategy<Value = String> {
        let names: Vec<&str> = OPTIONS.iter().flat_map(|option| option.names).copied().collect();
        let values = "randread|rw|write:4k|trimwrite|4k|64k|0|1|17|1g|50%|4k,8k|4k-64k|4k/50:8k/50|zipf:1.1|zoned:50/10:50/90|libaio|a:b|10s|poisson|,1|99999p|-1|x";
        let values: Vec<&'static str> = values.split('|').collect();
        prop_oneof![
            8 => (prop::sample::select(names), prop::sample::select(values)).prop_map(|(name, value)| format!("{name}={value}")),
            1 => Just("[a]".to_owned()),
            1 => Just("size=1m".to_owned()),
            1 => Just("filename=/dev/sdb".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn no_text_of_a_job_file_panics(text in "\\PC{0,200}") {
            _ = convert("job.fio", &text, &Outside::NOTHING).map(|conversion| conversion.program("job.fio"));
        }

        #[test]
        fn of_options_never_panics(lines in prop::collection::vec(line(), 0..8)) {
            let text = format!("[a]\nsize=1m\n{}", lines.join("\n"));
            if let Ok(conversion) = convert("job.fio", &text, &Outside::NOTHING) {
                _ = conversion.program("job.fio");
            }
            let text = format!("sd=a,lun=/dev/x\nwd=w,sd=a\nrd=r,wd=w,{}", lines.join(","));
            _ = crate::vdbench::convert("p.vdb", &text, &Outside::NOTHING).map(|conversion| conversion.program("p.vdb"));
        }
    }
}

#[test]
fn every_example_is_converted() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fio");
    let mut examples = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap();
        let conversion = convert(name, &std::fs::read_to_string(name).unwrap(), &Outside::NOTHING).unwrap();
        conversion.program(name).unwrap();
        examples += 1;
    }
    assert!(examples > 10);
}

/// The numbers are those that fio 3.33 counts (`sync` in its JSON), less those of the program.
#[test]
fn flushes_that_fio_repeats_after_a_pass_are_counted() {
    for (options, more) in [
        ("bs=4k size=64k rw=write fsync=4", 0),
        ("bs=4k size=64k rw=write fsync=4 loops=3", 2),
        ("bs=4k size=64k rw=write fdatasync=5 loops=3", 0),
        ("bs=4k size=64k io_size=256k rw=randwrite fsync=1", 3),
        ("bs=4k size=64k io_size=256k rw=write fsync=32", 1),
        ("bs=4k size=64k loops=4 rw=write fsync=1 nrfiles=2", 3),
        ("bs=12k size=100000 rw=write fsync=1", 1),
        ("bs=12k size=100000 rw=write fsync=4 loops=3", 3),
    ] {
        let text = converted(&format!("[a]\n{}\n", options.replace(' ', "\n"))).text;
        let expected = format!("fio flushes {} more", iosonar_trace::human::counted(more, "time"));
        assert_eq!(text.contains("fio flushes"), more > 0, "{options}: {text}");
        assert!(more == 0 || text.contains(&expected), "{options}: {text}");
    }
}

#[test]
fn the_generator_lfsr_is_refused_with_several_sizes() {
    for sizes in ["bssplit=4k/50:16k/50", "bsrange=4k-64k", "bs=4k,64k\nrw=randrw"] {
        let why = refused(&format!("[a]\nsize=1m\nrw=randread\nrandom_generator=lfsr\n{sizes}\n"));
        assert!(why.contains("random_generator") && why.contains("one size of blocks"), "{why}");
    }
    converted("[a]\nsize=96k\nnrfiles=3\nrw=randread\nrandom_generator=lfsr\nbs=4k,64k\n");
}
