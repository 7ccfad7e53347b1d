//! What a conversion refuses, ignores or notes, it says.

use super::*;

#[test]
fn what_a_program_cannot_say_is_refused_by_name_and_line() {
    for (options, why) in [
        ("zonemode=zbd", "job.fio:4: zonemode=zbd: cannot be converted: zoned block devices"),
        (
            "read_iolog=x",
            "job.fio:4: read_iolog=x: cannot be converted: a log of requests; convert it with iosonar convert",
        ),
        ("flow=2", "job.fio:4: flow=2: cannot be converted"),
        ("verify=crc32c rw=write", "job.fio:4: verify=crc32c: cannot be converted: fio reads back"),
        ("verify_backlog=8", "job.fio:4: verify_backlog=8: cannot be converted"),
        ("iodept=4", "job.fio:4: iodept: unknown option; did you mean iodepth?"),
        ("zzzzzz=4", "job.fio:4: zzzzzz: unknown option; docs/generated/job-options.md"),
        ("ioengine=cpuio cpuload=5", "job.fio:4: ioengine=cpuio: cannot be converted: cpuio makes no reads"),
        ("rw=read:-8k", "job.fio:4: rw=read:-8k: backwards"),
        ("rw=foo", "job.fio:4: rw=foo: unknown"),
        ("bs=1000", "job.fio:4: bs=1000: 1000 bytes are not a multiple of 512"),
        ("size=1m offset=100", "job.fio:5: offset=100: 100 bytes are not a multiple of 512"),
        (
            "size=1m filename=x numjobs=2 offset_increment=1001",
            "job.fio:7: offset_increment=1001: 1001 bytes are not a multiple of 512",
        ),
        ("size=1m filesize=32k-64k", "job.fio:5: filesize=32k-64k: fio draws the size of each file"),
        ("size=1m rw=trimwrite bs=4k,8k,16k", "job.fio:5: rw=trimwrite: discards and writes of different sizes"),
        ("size=1m filesize=4k offset=4k", "job.fio:6: offset=4k: behind the end of filesize"),
        ("rw=rw:8k", "job.fio:4: rw=rw:8k: a distance in a mix"),
        ("rw=read:100", "job.fio:4: rw=read:100: the distance is not a multiple of 512"),
        ("rw=randtrimwrite offset=4k", "job.fio:5: offset=4k: with rw=randtrimwrite and an offset"),
        ("rw=trimwrite number_ios=4 loops=2", "job.fio:5: number_ios=4: with rw=trimwrite"),
        ("rw=randread size=100000 random_distribution=zipf:1.2", "job.fio:6: random_distribution=zipf:1.2: fio ends"),
        ("filename=x:y file_service_type=sequential", "job.fio:5: file_service_type=sequential: one named file"),
        ("size=1m filesize=100", "job.fio:5: filesize=100: less than a sector for each file"),
        ("bs=x", "job.fio:4: bs=x: `x` is not a whole number"),
        ("bssplit=4k/50:8k/40", "job.fio:4: bssplit=4k/50:8k/40: the percentages add up to 90, not 100"),
        ("rate=1m thinktime=5", "job.fio:5: thinktime=5: together with a rate"),
        ("rw=rw rate_iops=,100", "job.fio:5: rate_iops=,100: reads have no rate"),
        (
            "thinktime=5 thinktime_blocks=8 iodepth=4 ioengine=libaio",
            "job.fio:5: thinktime_blocks=8: 8 requests before a pause",
        ),
        ("random_distribution=zipf rw=randread", "job.fio:4: random_distribution=zipf: its theta"),
        ("random_distribution=zipf:1.2:0.5 rw=randread", "job.fio:4: random_distribution=zipf:1.2:0.5: a centre"),
        ("size=50% filename=/dev/x offset=1m", "job.fio:6: offset=1m: an offset in bytes and a size in percent"),
        ("startdelay=5-10", "job.fio:4: startdelay=5-10: a random time"),
        ("rate=1m rate_iops=5", "job.fio:5: rate_iops=5: together with rate, which fio refuses too"),
        ("bs=1.5k", "job.fio:4: bs=1.5k: `1.5k`: fio does not read `.5k` as a unit"),
        ("runtime=5min", "job.fio:4: runtime=5min: `5min`: fio does not read `min` as a unit"),
        ("filename=", "job.fio:4: filename=: `` is not a device"),
        ("iodepth=0", "job.fio:4: iodepth=0: it is 0"),
        ("exitall", "job.fio:4: exitall: cannot be converted"),
    ] {
        let found = refused(&format!("# a job\n[a]\nsize=1g\n{}\n", options.replace(' ', "\n")));
        assert!(found.starts_with(why), "{options}: {found}");
    }
    assert!(refused("[a]\n").starts_with("job.fio:1: job a: size: missing"));
    assert!(refused("[global]\nbs=4k\n").contains("the file has no job"));
    // Every reason at once.
    assert_eq!(refused("[a]\nsize=1m\nflow=1\nzonemode=zbd\n[b]\nsize=1m\nexitall\n").lines().count(), 3);
    // Options that are off are no options.
    converted("[a]\nsize=1m\nflow=0\nzonemode=none\nexitall=0\n");
}

#[test]
fn nothing_is_ignored_in_silence() {
    let conversion = converted(
        "[global]\nioengine=libaio\ngroup_reporting\nrandrepeat=0\n[a]\nrw=write\nsize=1m\nbuffer_compress_percentage=60\ndedupe_percentage=20\nverify=md5\ndo_verify=0\nramp_time=5\n",
    );
    let warnings = conversion.left_out().join("\n");
    for part in [
        "ignored: job.fio:2: ioengine=libaio: how requests are issued",
        "ignored: job.fio:3: group_reporting: what fio reports",
        "ignored: job.fio:4: randrepeat=0: fio's random numbers; the run's are set by --seed",
        "note: a: the compressible part of each block is 0xdeadbeef, in fio zeros",
        "note: a: verify: nothing is verified; iosonar replay --verify does it for a load",
        "note: a: the first 5s are fio's ramp_time",
        "note: in fio a goes through the page cache (direct=1 is not set)",
    ] {
        assert!(warnings.contains(part), "{part}: {warnings}");
        assert!(conversion.text.contains(part), "{part}");
    }
    assert_eq!(conversion.meanings, ["a: keeps one request outstanding: sequential writes of 4k; on a; 256 requests"]);
}
