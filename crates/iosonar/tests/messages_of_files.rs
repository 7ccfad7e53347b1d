//! What `files` says: see `transcript`.

use crate::transcript::{Transcript, each};

const STRACE: &str = "7 1700000000.000000 openat(AT_FDCWD, \"/d/a\", O_RDONLY) = 3 <0.000010>\n7 1700000000.000100 close(3) = 0 <0.000005>\n";

#[test]
fn messages_of_files_replay() {
    let options = "
        --factor 0
        --start 2s --end 1s
        --order fs --threads trace
        --order fs-dispatched --threads trace
        --order nonsense
        --pool 0
        --instances 0
        --output b.calls-run.parquet
        --depth each=4
        --depth 4097
        --wait inline
        --isolate=processors
        --perturb delay=1ms --timing asap
        --asap --timing diff
        --asap --speedup 2
        --factor 2 --speedup 2
        --start 1h
        --map map";
    let replay = "iosonar files replay t.calls.parquet --root root -o a.calls-run.parquet";
    let more = format!(
        "iosonar files replay t.calls.parquet --root / -o a.calls-run.parquet
        {replay}
        {replay} --instances 2
        echo *
        iosonar files prepare t.calls.parquet --root root
        {replay} > /dev/null
        {replay}
        ls root root/d"
    );
    let files = [("t.strace", STRACE), ("map", "/d /../e\n")];
    let bench = Transcript::new(&files).prepare("mkdir root\niosonar convert t.strace t.calls.parquet");
    bench.run(&each(replay, options)).run(&more).check("files-replay");
}

#[test]
fn messages_of_files_scale() {
    let scale = "iosonar files scale t.calls.parquet -o t.scale.parquet";
    let options = "--repeat 2\n--repeat=2\n--fake-io\n--json\n-ox.calls-run.parquet\n--help";
    let more = format!(
        "touch t.scale.parquet
        {scale} --root root --overwrite -- --map t.scale.parquet
        rm t.scale.parquet
        {scale} --root root -- --map map
        {scale} --root /proc
        iosonar files scale t.calls.parquet --root root --overwrite -o t.calls.parquet
        iosonar files scale t.calls.parquet --root root --overwrite -o no/x.scale.parquet
        iosonar info t.calls.parquet > /dev/null
        ls . root"
    );
    let files = [("t.strace", STRACE), ("map", "/d /srv/{instance}\n")];
    let bench = Transcript::new(&files).prepare("mkdir root\niosonar convert t.strace t.calls.parquet");
    bench.run(&each(&format!("{scale} --root root --"), options)).run(&more).check("files-scale");
}

#[test]
fn messages_of_files_record() {
    let lines = "
        iosonar files record -o t.calls.parquet
        iosonar files record -o t.calls.parquet tar -cf x.tar d
        iosonar files record -o t.parquet -- true
        PATH=/nonexistent $(command -v iosonar) files record --with strace -o t.calls.parquet -- true
        echo *
        touch t.calls.parquet
        iosonar files record -o t.calls.parquet -- true";
    Transcript::new(&[]).run(lines).check("files-record");
}
