use super::*;
use crate::program::Program;

fn converted(source: &str) -> Conversion {
    convert("job.fio", source, &Outside::NOTHING).unwrap_or_else(|why| panic!("{source}: {why}"))
}

/// The program of one job, without comments and its first lines.
fn streams(source: &str) -> String {
    let conversion = converted(source);
    Program::parse("job.toml", &conversion.text).unwrap_or_else(|why| panic!("{why}\n{}", conversion.text));
    let lines = conversion.text.lines().skip(2).filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[expect(dead_code, reason = "tests of options follow")]
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
