use super::*;
use crate::program::Program;

const DEVICES: &str = "sd=sd1,lun=/dev/sdb,threads=16\nsd=sd2,lun=/dev/sdc,size=10g,openflags=o_sync\n";

fn converted(source: &str) -> Conversion {
    let conversion = convert("p.vdb", source, &Outside::NOTHING).unwrap_or_else(|why| panic!("{source}: {why}"));
    Program::parse("p.toml", &conversion.text).unwrap_or_else(|why| panic!("{why}\n{}", conversion.text));
    conversion
}

/// The streams, without comments.
fn streams(source: &str) -> String {
    let text = converted(source).text;
    let lines =
        text.lines().skip_while(|line| *line != "[[stream]]").filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn refused(source: &str) -> String {
    convert("p.vdb", source, &Outside::NOTHING).err().unwrap_or_else(|| panic!("{source} was converted"))
}

#[test]
fn the_highest_rate_is_a_closed_stream_of_threads() {
    let text = streams(
        "sd=sd1,lun=/dev/sdb,threads=16\nwd=w,sd=sd1,xfersize=8k,rdpct=70\nrd=r,wd=w,iorate=max,elapsed=60,interval=1\n",
    );
    let expected = "[[stream]]\nname = \"r-sd1\"\nclosed = true\ndepth = 16\nmix = \"read=70,write=30\"\nsizes = \"8k\"\n\
                    positions = \"uniform\"\nalign = \"8k\"\nend = \"1m\"";
    assert_eq!(text, expected);
}

#[test]
fn a_rate_is_poisson_and_shared_by_skew_and_devices() {
    let source =
        format!("{DEVICES}wd=a,sd=sd*,skew=80\nwd=b,sd=sd1,seekpct=0,rdpct=0\nrd=r,wd=(a,b),iorate=1000,elapsed=2m\n");
    let text = streams(&source);
    for (name, rate) in [("r-a-sd1", 400), ("r-a-sd2", 400), ("r-b-sd1", 200)] {
        assert!(text.contains(&format!("name = \"{name}\"\narrivals = \"poisson rate={rate}\"")), "{text}");
    }
    assert!(text.contains("op = \"write\"\nsizes = \"4k\"\npositions = \"sequential\"\ndevice = \"sd1\""), "{text}");
    let even = streams(&source.replace("elapsed", "distribution=d,elapsed"));
    assert!(even.contains("arrivals = \"uniform rate=400\""), "{even}");
}

#[test]
fn devices_share_a_workload_equally() {
    let devices: String = (1..10).map(|n| format!("sd=a{n},lun=/dev/a{n},threads=4\n")).collect();
    let rates = |run: &str| -> Vec<(String, String)> {
        let text = streams(&format!("{devices}{run}"));
        let value = |block: &str, key: &str| {
            let line =
                block.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("{key}: {block}"));
            line.trim_matches('"').to_owned()
        };
        let blocks = text.split("[[stream]]").skip(1);
        blocks.map(|block| (value(block, "name = \""), value(block, "arrivals = \"poisson rate="))).collect()
    };
    let expected = |name: &str, numbers: &[u32], rate: &str| -> Vec<(String, String)> {
        numbers.iter().map(|n| (format!("r-{name}-a{n}"), rate.to_owned())).collect()
    };
    let nine: Vec<u32> = (1..10).collect();
    for list in ["(a1-a9)", "a*", "a?", "(a1-a4,a5,a6-a9)"] {
        let found = rates(&format!("wd=w,sd={list}\nrd=r,wd=w,iorate=900\n"));
        assert_eq!(found, expected("w", &nine, "100"), "{list}");
    }
    // Workloads share the rate by skew, whatever the number of their devices.
    let found = rates("wd=w1,sd=(a1-a3,a5),skew=80\nwd=w2,sd=(a9)\nrd=r,wd=w1-w2,iorate=1000\n");
    assert_eq!(found, [expected("w1", &[1, 2, 3, 5], "200"), expected("w2", &[9], "200")].concat());
    // A workload's own rate is shared too, and is none of the run's.
    let found = rates("wd=w1,sd=(a1-a2),iorate=50\nwd=w2,sd=a3\nrd=r,wd=*,iorate=1000\n");
    assert_eq!(found, [expected("w1", &[1, 2], "25"), expected("w2", &[3], "1000")].concat());

    let text = streams(&format!("{devices}wd=w,sd=(a1-a9)\nrd=r,wd=w,iorate=max\n"));
    assert_eq!(text.matches("closed = true\ndepth = 4\n").count(), 9, "{text}");
}

#[test]
fn workloads_share_the_threads_of_a_device() {
    let source = "sd=s,lun=/dev/sdb\nwd=a,sd=s,seekpct=20,range=(10,20)\nwd=b,sd=s,xfersize=(4k,75,64k,25)\nrd=r,wd=*,iorate=max,warmup=5,elapsed=30";
    let text = streams(source);
    assert!(text.contains("positions = \"runs random=20%\"\nregion = \"10%..20%\"\nweight = 50"), "{text}");
    assert!(text.contains("sizes = \"4k:75,64k:25\""), "{text}");
    assert!(text.contains("depth = 8\nend = \"35s\""), "{text}");
}

#[test]
fn runs_follow_each_other() {
    let text = streams(&format!(
        "{DEVICES}wd=default,sd=sd2,rdpct=0\nwd=w,seekpct=eof\nrd=default,elapsed=10,th=4\nrd=r1,wd=w,iorate=max,pause=3\nrd=r2,wd=w,iorate=50\n"
    ));
    assert!(text.contains("name = \"r1-sd2\"\nclosed = true\ndepth = 4\nop = \"fua\""), "{text}");
    assert!(text.contains("passes = 1"), "{text}");
    assert!(text.contains("after = \"r1-sd2\"\nstart = \"3s\"\nend = \"13s\""), "{text}");
}

/// vdbench sleeps after a run, before the next (`prepareNextRun`).
#[test]
fn a_pause_is_between_a_run_and_the_next() {
    let source = format!(
        "{DEVICES}wd=w,sd=sd1\nrd=default,wd=w,iorate=10,elapsed=10\nrd=a,pause=3\nrd=b,pause=4\nrd=c,pause=5\n"
    );
    let text = streams(&source);
    assert!(!text.split("[[stream]]").nth(1).unwrap().contains("start"), "{text}");
    for times in
        ["after = \"a-w-sd1\"\nstart = \"3s\"\nend = \"13s\"", "after = \"b-w-sd1\"\nstart = \"4s\"\nend = \"14s\""]
    {
        assert!(text.contains(times), "{times}: {text}");
    }
    let left_out = converted(&source).left_out().join("\n");
    assert!(left_out.contains("p.vdb:7: pause=5: no effect: no run comes after it"), "{left_out}");
    assert!(!left_out.contains("pause=3") && !left_out.contains("pause=4"), "{left_out}");
}

/// Each converted parameter, where it has no effect.
#[test]
fn each_parameter_without_effect_is_named() {
    for (text, why) in [
        ("wd=w,sd=sd1\nrd=r,wd=w,iorate=max,distribution=d\n", "4: distribution=d: no effect: with iorate=max"),
        ("wd=w,sd=sd1,iorate=9,skew=50\nrd=r,wd=w\n", "3: skew=50: no effect: the workload has a rate"),
        ("wd=w,sd=sd1,iorate=9\nrd=r,wd=w,iorate=50\n", "4: iorate=50: no effect: its workloads have rates"),
        ("wd=w,sd=sd1,xfersize=8k\nrd=r,wd=w,xfersize=4k\n", "3: xfersize=8k: no effect: the run has its own"),
        ("wd=w,sd=sd1,rdpct=8\nrd=r,wd=w,rdpct=4\n", "3: rdpct=8: no effect: the run has its own"),
        ("wd=w,sd=sd1,seekpct=8\nrd=r,wd=w,seekpct=4\n", "3: seekpct=8: no effect: the run has its own"),
        ("wd=w,sd=sd1,range=(0,8)\nrd=r,wd=w,range=(0,9)\n", "3: range=(0,8): no effect: the run has its own"),
        ("wd=w,sd=sd1,rhpct=0\nrd=r,wd=w,rhpct=0\n", "3: rhpct=0: no effect: the run has its own"),
        ("wd=w,sd=sd1\nrd=r,wd=w,sd=sd2\n", "3: sd=sd1: no effect: the run has its own"),
        ("wd=w,sd=sd1\nrd=r,wd=w,iorate=max,threads=2\n", "1: threads=16: no effect: the run has its own"),
        ("wd=w,sd=sd1\nrd=r,wd=w,iorate=9,threads=2\n", "1: threads=16: no effect: the run has its own"),
        ("wd=w,sd=sd1\nrd=r,wd=w\n", "2: sd=sd2: no effect: no run uses it"),
        ("wd=w,sd=sd1\nwd=x,sd=sd1\nrd=r,wd=w\n", "4: wd=x: no effect: no run uses it"),
        ("wd=w,sd=sd1,streams=0\nrd=r,wd=w\n", "3: streams=0: it is off"),
        ("wd=w,sd=sd1,iorate=9\nrd=r,wd=w,iorate=max\n", "4: iorate=max: no effect: its workloads have rates"),
        ("wd=w,sd=sd2\nrd=r,wd=w\n", "2: openflags=o_sync: no effect: no run writes to the device"),
        (
            "sd=s,lun=/dev/x,openflags=o_direct\nwd=w,sd=s,rdpct=0\nrd=r,wd=w\n",
            "3: openflags=o_direct: no effect: requests of a program go to the device",
        ),
        ("wd=default,rdpct=9\nwd=w,sd=sd1,rdpct=8\nrd=r,wd=w\n", "3: rdpct=9: no effect: no definition that a run"),
        ("wd=w,sd=sd1\nrd=default,iorate=9\nrd=r,wd=w,iorate=8\n", "4: iorate=9: no effect: no definition that"),
        ("sd=default,align=8k\nwd=w,sd=sd1\nrd=r,wd=w\n", "3: align=8k: no effect: no definition that a run uses"),
        ("dedupratio=2\ncompratio=3\nwd=w,sd=sd1\nrd=r,wd=w\n", "4: compratio=3: no effect: no run writes"),
        ("compratio=2\ncompratio=3\nwd=w,sd=sd1\nrd=r,wd=w\n", "3: compratio=2: no effect: a later one replaces it"),
        ("dedupunit=8k\nwd=w,sd=sd1,rdpct=0\nrd=r,wd=w\n", "3: dedupunit=8k: no effect: no data of writes"),
        ("sd=s,lun=/dev/x,range=(0,5)\nwd=w,sd=s,range=(0,8)\nrd=r,wd=w\n", "3: range=(0,5): no effect: the run or"),
    ] {
        let left_out = converted(&format!("{DEVICES}{text}")).left_out().join("\n");
        assert!(left_out.contains(&format!("p.vdb:{why}")), "{text}: {left_out}");
    }
    // General parameters behind those that are ignored.
    let text = streams(&format!("data_errors=5,compratio=2\n{DEVICES}wd=w,sd=sd*,rdpct=50\nrd=r,wd=w\n"));
    assert!(text.contains("compressible=50"), "{text}");
    let left_out = converted(&format!("data_errors=5,compratio=2\n{DEVICES}wd=w,sd=sd*\nrd=r,wd=w\n")).left_out();
    assert!(left_out.join("\n").contains("compratio=2: no effect: no run writes"), "{left_out:?}");
}

/// A default counts where one of its definitions uses it.
#[test]
fn parameters_with_effect_are_not_named() {
    let source = "sd=default,threads=4\nsd=a,lun=/dev/a\nsd=b,lun=/dev/b,threads=8\nwd=default,xfersize=8k,rdpct=50\n\
                  wd=w,sd=a\nwd=v,sd=b,xfersize=4k\nrd=default,elapsed=9,distribution=d,pause=1\n\
                  rd=r,wd=w,iorate=max\nrd=s,wd=v,iorate=9\n";
    assert_eq!(converted(source).ignored, []);
}

#[test]
fn what_a_program_cannot_say_is_refused_by_name() {
    let with = |workload: &str, run: &str| refused(&format!("{DEVICES}wd=w,sd=sd1{workload}\nrd=r,wd=w{run}\n"));
    for (workload, run, why) in [
        ("", ",iorate=curve", "p.vdb:4: iorate=curve: cannot be converted: a series of runs; use iosonar sweep"),
        (
            "",
            ",iorate=(100,200)",
            "p.vdb:4: iorate=(100,200): cannot be converted: a series of runs; use iosonar sweep",
        ),
        (
            "",
            ",iorate=max,forthreads=(1,2)",
            "p.vdb:4: forthreads=(1,2): cannot be converted: a series of runs; use iosonar sweep",
        ),
        (",rhpct=50", "", "p.vdb:3: rhpct=50: cannot be converted: hits of a cache"),
        (",stride=(4k,4k)", "", "p.vdb:3: stride=(4k,4k): cannot be converted: skips"),
        (",xfersze=4k", "", "p.vdb:3: xfersze=4k: unknown parameter; did you mean xfersize?"),
        (",xfersize=100", "", "p.vdb:3: xfersize=100: 100 bytes are not a multiple of 512"),
        (",skew=50", ",iorate=10", "p.vdb:4: wd=w: the skews of its workloads add up to 50, not 100"),
        (",range=(20,10)", "", "p.vdb:3: range=(20,10): a start below an end"),
        ("", ",iorate=10,distribution=u", "p.vdb:4: distribution=u: cannot be converted"),
        ("", ",elapsed=x", "p.vdb:4: elapsed=x: `x` is not a time"),
        ("", ",elapsed=0", "p.vdb:4: elapsed=0: it is 0"),
    ] {
        let found = with(workload, run);
        assert!(found.starts_with(why), "{workload} {run}: {found}");
    }
    assert!(refused("fsd=f,anchor=/x\nrd=r").starts_with("p.vdb:1: fsd=f: cannot be converted: calls to files"));
    assert!(refused("sd=s,lun=/dev/x\n").contains("the file has no run"));
    assert!(refused("wd=w,sd=s\nrd=r,wd=w").contains("no storage definition above has this name"));
    let found = with("", ",sd=(sd1-sd3)");
    assert!(found.starts_with("p.vdb:4: sd=sd1-sd3: sd3 of the range sd1-sd3 is not defined above"), "{found}");
    let found = refused(&format!("{DEVICES}wd=w,sd=sd1\nrd=r,wd=(w1-w4)\n"));
    assert!(found.starts_with("p.vdb:4: wd=w1-w4: no workload definition above is in the range"), "{found}");
    let found = refused(&format!("{DEVICES}sd=sd1,lun=/dev/sdd\nwd=w,sd=sd*\nrd=r,wd=w\n"));
    assert_eq!(found, "p.vdb:3: sd=sd1: p.vdb:1 has this name already");
    assert!(refused("sd=(a,b),lun=/dev/sdb\n").starts_with("p.vdb:1: sd=(a,b): a definition has one name"));
}

#[test]
fn ignored_parameters_are_listed() {
    let conversion = converted(
        "compratio=2\nhd=default,shell=ssh\nsd=s,lun=/tmp/f,size=1g\nwd=w,sd=s\nrd=r,wd=w,iorate=10,interval=5\n",
    );
    let warnings = conversion.left_out().join("\n");
    for part in ["p.vdb:2: hd=default: how vdbench", "p.vdb:5: interval=5: what vdbench"] {
        assert!(warnings.contains(part), "{warnings}");
    }
    assert_eq!(
        conversion.meanings,
        ["r: submits 10 requests per second as a Poisson process: 10 random reads of 4k (w) on s of 1G, for 30s"]
    );
}

#[test]
fn ratios_are_the_data_of_streams_that_write() {
    let data = |general: &str, storage: &str, rdpct: u32, rate: &str| {
        let text = streams(&format!(
            "{general}sd=s,lun=/dev/sdb{storage}\nwd=w,sd=s,rdpct={rdpct}\nrd=r,wd=w,iorate={rate}\n"
        ));
        text.lines().find_map(|line| line.strip_prefix("data = ")).map(|value| value.trim_matches('"').to_owned())
    };
    for (general, storage, expected) in [
        ("", "", None),
        ("compratio=1\n", "", None),
        ("compratio=2\n", "", Some("compressible=50")),
        ("compratio=1.5\ndedupratio=4\ndedupunit=8k\n", "", Some("compressible=33 dedupe=75 block=8k")),
        ("dedupratio=2\ndedupunit=4k\n", ",dedupratio=5", Some("dedupe=80")),
        ("", ",dedupratio=1000", Some("dedupe=99")),
    ] {
        for rate in ["10", "max"] {
            assert_eq!(data(general, storage, 50, rate).as_deref(), expected, "{general}{storage}");
            assert_eq!(data(general, storage, 100, rate), None, "it only reads");
        }
    }
}

#[test]
fn what_vdbench_accepts_is_accepted() {
    let base = "sd=sd1,lun=/dev/sdb,threads=16\nwd=w,sd=sd1,xfersize=8k\n";
    let plain = streams(&format!("{base}rd=r,wd=w,iorate=max,elapsed=6h\n"));
    // Words and units in any case.
    assert_eq!(streams(&format!("{base}RD=r,wd=w,IORATE=MAX,elapsed=6H\n")), plain);
    let text = streams(
        "sd=s,lun=/dev/sdb,openflags=O_SYNC\nwd=Default,rdpct=0\nwd=w,sd=s,seekpct=SEQ\nrd=r,wd=w,iorate=10,distribution=D\n",
    );
    assert!(text.contains("arrivals = \"uniform rate=10\"\nop = \"fua\"") && text.contains("\"sequential\""), "{text}");
    // A range of a device, unless the workload has one.
    let text = streams("sd=s,lun=/dev/sdb,range=(10,20)\nwd=a,sd=s\nwd=b,sd=s,range=(40,50)\nrd=r,wd=*,iorate=10\n");
    assert!(text.contains("region = \"10%..20%\"") && text.contains("region = \"40%..50%\""), "{text}");
    // A run that names devices alone.
    let text = streams(
        "sd=sd1,lun=/dev/sdb\nsd=sd2,lun=/dev/sdc\nwd=default,rdpct=0\nrd=r,sd=sd*,xfersize=64k,iorate=100,elapsed=60\n",
    );
    for name in ["r-default-sd1", "r-default-sd2"] {
        let stream = format!("name = \"{name}\"\narrivals = \"poisson rate=50\"\nop = \"write\"\nsizes = \"64k\"");
        assert!(text.contains(&stream), "{text}");
    }
    // Disks of Windows need no size.
    for lun in [r"\\.\PhysicalDrive1", r"\\.\d:", "E:"] {
        streams(&format!("sd=s,lun={lun}\nwd=w,sd=s\nrd=r,wd=w,iorate=10\n"));
    }
    let conversion = converted("sd=s,lun=/dev/sdb,hitarea=1m\nwd=w,sd=s\nrd=r,wd=w,iorate=10\n");
    assert!(conversion.left_out().join("\n").contains("p.vdb:1: hitarea=1m: where hits of a cache go"));
}

#[test]
fn a_variable_needs_a_value() {
    for source in ["sd=s,lun=$lun\n", "sd=s,lun=/dev/x,size=${size}g\n"] {
        assert!(refused(source).contains(": a variable, whose value vdbench takes from its command line"), "{source}");
    }
}

#[test]
fn errors_of_the_program_name_the_parameter() {
    let source = "sd=s,lun=/tmp/f,size=1m\nwd=w,sd=s,xfersize=2m\nrd=r,wd=w,iorate=10\n";
    let conversion = convert("p.vdb", source, &Outside::NOTHING).unwrap();
    let why = conversion.program("p.vdb").unwrap_err();
    assert!(why.starts_with("p.vdb:2: xfersize=2m: ") && !why.contains("as a program"), "{why}");
}

#[test]
fn what_does_not_count_is_said() {
    for (text, why) in [
        ("wd=a,sd=sd1,skew=75\nwd=b,sd=sd2,skew=25\nrd=r,wd=*,iorate=max\n", "each device keeps its threads busy"),
        ("wd=a,sd=sd1\nrd=r,wd=a,iorate=100,threads=2\n", "vdbench would delay those beyond threads=2"),
        ("wd=a,sd=sd1,xfersize=4k,xfersize=8k\nrd=r,wd=a,iorate=max\n", "xfersize=4k: no effect: a later one"),
    ] {
        let left_out = converted(&format!("{DEVICES}{text}")).left_out().join("\n");
        assert!(left_out.contains(why), "{text}: {left_out}");
    }
}

#[test]
fn unknown_openflags_are_refused_with_the_known_ones() {
    let source = |flags: &str| format!("sd=s,lun=/dev/sdb,openflags={flags}\nwd=w,sd=s,rdpct=0\nrd=r,wd=w,iorate=10\n");
    let why = refused(&source("(o_direct,o_snyc)"));
    assert!(why.contains("p.vdb:1") && why.contains("o_snyc is not known; known are o_sync, o_dsync,"), "{why}");
    assert!(refused(&source("0x4000")).contains("0x4000 is not known"));
    assert!(streams(&source("o_rsync")).contains("fua") && !streams(&source("(directio,fsync)")).contains("fua"));
}

/// Without a parameter, the program or its notes are others.
#[test]
fn no_parameter_vanishes_without_a_word() {
    let corpus = [
        "compratio=2,dedupratio=3,dedupunit=8k\nsd=default,threads=4,openflags=o_sync\nsd=a,lun=/dev/a,size=1g,offset=1m,align=16k\n\
         sd=b,lun=/dev/b,threads=8,range=(0,50),dedupratio=2\nwd=default,xfersize=8k,rdpct=40\nwd=v,sd=a,skew=70,seekpct=0\n\
         wd=w,sd=b,xfersize=4k,range=(10,20),seekpct=eof\nrd=default,elapsed=9,pause=2,iorate=50\n\
         rd=r,wd=(v,w),iorate=max,warmup=3,interval=1\nrd=s,wd=(v,w),iorate=90,distribution=d,threads=3,rdpct=20\n",
        "compratio=2,dedupratio=3,dedupunit=8k\nsd=default,threads=4,openflags=o_direct\nsd=a,lun=/dev/a,openflags=o_sync,threads=2\n\
         wd=default,xfersize=8k,skew=9\nwd=v,sd=a,iorate=5,xfersize=16k\nwd=x,sd=a\n\
         rd=default,iorate=7,elapsed=9\nrd=r,wd=v,iorate=max,distribution=d,threads=3,elapsed=8,xfersize=2k,range=(0,10)\n",
        "sd=default,threads=4\nsd=a,lun=/dev/a,hitarea=1m,openflags=fsync\nwd=default,rdpct=0\nrd=r,sd=a,elapsed=9,threads=2,seekpct=9\n",
    ];
    let mut vanished = Vec::new();
    for source in corpus {
        let whole = converted(source);
        let said = whole.left_out().join("\n");
        for (number, line) in source.lines().enumerate() {
            // A list in parentheses has commas too.
            let words: Vec<&str> = line.split(',').collect();
            for (at, word) in words.iter().enumerate().filter(|(_, word)| !word.ends_with(')')) {
                let is_definition = at == 0 && ["sd=", "wd=", "rd="].iter().any(|kind| line.starts_with(kind));
                if is_definition || words.len() == 1 || word.starts_with("lun=") || word.starts_with("sd=") {
                    continue;
                }
                let has_list = word.contains('(');
                let end = at + 1 + usize::from(has_list);
                let name = words[at..end].join(",");
                let without = [&words[..at], &words[end..]].concat().join(",");
                let rest: Vec<&str> =
                    source.lines().enumerate().map(|(n, l)| if n == number { &without } else { l }).collect();
                let other = convert("p.vdb", &rest.join("\n"), &Outside::NOTHING);
                let is_same = other
                    .is_ok_and(|other| (other.text, other.meanings) == (whole.text.clone(), whole.meanings.clone()));
                if is_same {
                    vanished.push(format!("{}: {name}: {said}", number + 1));
                }
            }
        }
    }
    assert!(vanished.is_empty(), "{}", vanished.join("\n\n"));
}
