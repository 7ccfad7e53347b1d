//! What commands say of wrong command lines, and of runs: see `transcript`.

use crate::transcript::{Transcript, each};

/// A load of two seconds, and a fake run of it.
fn with_a_run() -> Transcript {
    Transcript::new(&[]).prepare(
        "iosonar generate poisson a.load.gz --rate 50 --duration 2s
        iosonar replay a.load.gz --fake-io --asap --output a.replay.gz",
    )
}

#[test]
fn wrong_command_lines() {
    let lines = "
        iosonar nonsense
        iosonar complete
        iosonar reprot
        iosonar generate nonsense x.load
        iosonar device nonsense
        iosonar convert a.load.gz
        iosonar edit a.load.gz
        iosonar check - a.load.gz
        iosonar limit --late 0 a.replay.gz
        iosonar limit --late soon a.replay.gz
        iosonar limit --skip-warm-up missing.replay.parquet -
        true | iosonar limit --skip-warm-up missing.replay.parquet /dev/stdin
        iosonar recover a.load.gz
        iosonar recover a.replay.gz.journal --output b
        iosonar record --device /dev/nope --duration soon
        iosonar demo --seconds 1
        echo *";
    with_a_run().run(lines).check("command-lines");
}

#[test]
fn options_of_other_programs() {
    let lines = [
        each(
            "iosonar replay a.load.gz --fake-io",
            "--iodepth=4\n--filename=/dev/sdb\n--with-ordering\n--map-devs=m\nelapsed=10",
        ),
        each("iosonar generate poisson b.load.gz", "--bs=4k\n--iorate=100"),
        each("iosonar record", "--stopwatch=10"),
    ];
    with_a_run().run(&lines.concat()).check("other-programs");
}

#[test]
fn failures_during_the_work() {
    let lines = "
        iosonar info nowhere.load.gz
        iosonar limit a.load.gz
        iosonar limit a.replay.gz
        iosonar check a.load.gz a.load.gz
        iosonar check a.replay.gz a.replay.gz
        iosonar check a.replay.gz /dev/null
        iosonar check /dev/null a.load.gz
        iosonar replay a.load.gz --fake-io -o a.replay.gz
        iosonar replay a.load.gz --fake-io -o no/directory/b.replay.gz
        iosonar replay a.load.gz --fake-io -o b.replay.gz --start 1h
        iosonar convert a.load.gz a.replay.gz
        iosonar device scheduler /dev/nowhere
        iosonar device inspect nowhere
        iosonar device inspect /dev/null
        iosonar device slurp empty
        iosonar --help > /dev/full
        iosonar info --help > /dev/full
        iosonar --version > /dev/full
        iosonar help replay > /dev/full
        echo *";
    with_a_run().prepare("touch empty").run(lines).check("failures");
}

#[test]
fn options_of_replay() {
    let options = "
        --depth 0
        --depth 0 --verbose
        --depth 65537
        --depth each=0
        --depth many
        --speedup 0
        --speedup -1
        --speedup nan
        --start soon
        --start -1
        --start 10m --end 5m
        --for 0
        --grace soon
        --ahead-time -1s
        --output-offset soon
        --output-offset 100000d
        --perturb quantize=soon
        --asap --closed
        --workers 0
        --scale 3
        --engine io_uring
        --virtual-time";
    let of_data = "
        --data zero --compressible 50
        --data pattern=00 --dedupe 5
        --compressible 50 --fill-random 50
        --compressible 10 --data zero
        --dedupe 100
        --compressible 101
        --data zeros
        --data pattern=xyz";
    let lines = "
        iosonar replay a.load.gz -o b.replay.gz --simulate constant=soon
        iosonar replay a.load.gz -o b.replay.gz --simulate constant=1ms --engine threads -t target
        iosonar replay a.load.gz -o b.replay.gz --simulate constant=1ms --virtual-time --wait spin
        iosonar replay a.load.gz -o b.replay.gz --simulate constant=1ms --fit reject
        iosonar replay a.load.gz -o b.replay.gz --simulate constant=1ms --closed=dependencies
        iosonar replay a.load.gz -o b.replay.gz --engine threads
        iosonar replay a.load.gz -o b.replay.gz -t target --engine simulate
        iosonar replay a.load.gz -o b.replay.gz -t target --engine threads --dry-run
        iosonar replay a.load.gz -o b.replay.gz -t target --engine threads --sqpoll
        iosonar replay a.load.gz -o b.replay.gz -t target --engine threads --workers 0
        iosonar replay a.load.gz -o b.replay.gz -t target --poll
        iosonar replay --calibrate --depth 0
        iosonar replay a.load.gz -o b.nonsense --fake-io
        zcat a.load.gz | iosonar replay - -t target -o b.replay.gz --loop --for 1
        zcat a.load.gz | iosonar replay - -t target -o b.replay.gz --wait inline
        iosonar replay a.load.gz -o b.replay.gz --simulate run=a.load.gz --virtual-time
        cmp target zeros
        echo *";
    let replay = "iosonar replay a.load.gz -o b.replay.gz";
    let directory = with_a_run().prepare("truncate -s 1M target zeros");
    let directory = directory.run(&each(&format!("{replay} --fake-io"), options));
    let directory = directory.run(&each(&format!("{replay} -t target"), of_data));
    directory.run(lines).check("options-of-replay");
}

#[test]
fn outputs_of_replay() {
    let lines = "
        iosonar replay a.load.gz -t target -o r.sheet
        iosonar replay a.load.gz -t target -o -
        iosonar replay a.load.gz -t target -o no/such/r.replay.gz
        iosonar replay a.load.gz -t target -o r.csv
        iosonar replay a.load.gz -t target -o directory.replay --overwrite
        iosonar replay a.load.gz -t target -o dangling.replay --overwrite
        iosonar replay a.load.gz -t target -o round.replay --overwrite
        iosonar replay a.load.gz -t target -o proc.replay --overwrite
        iosonar replay a.load.gz -t target -o $(printf 'x%.0s' $(seq 235)).replay --overwrite
        iosonar replay a.load.gz -t target -o a.load.gz --overwrite
        iosonar replay a.load.gz -t target -o target --overwrite
        cmp target zeros
        echo *";
    let files = "truncate -s 1M target zeros
        mkdir directory.replay
        ln -s nowhere dangling.replay
        ln -s round.replay round.replay
        ln -s /proc/version proc.replay";
    with_a_run().prepare(files).run(lines).check("outputs-of-replay");
}

#[test]
fn messages_of_wipe() {
    let options = "
        --share 2G
        --share 0%
        --share 101%
        --share 5% --range 0..1M
        --range 4k
        --range 4k..4k
        --range 0..2M
        --range 100..";
    let target = Transcript::new(&[]).prepare("truncate -s 1M target zeros");
    target.run(&each("iosonar device wipe target", options)).run("cmp target zeros").check("wipe");
}
