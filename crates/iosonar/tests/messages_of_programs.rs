//! What `workload` and `cache` say: see `transcript`.

use crate::transcript::Transcript;

#[test]
fn messages_on_programs_and_job_files() {
    let endless = "name = \"p\"\nabout = \"A program.\"\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\n";
    let devices = "name = \"d\"\nabout = \"A program.\"\ndevices.data = \"4M\"\n[[stream]]\nname = \"s\"\nclosed = true\nop = \"read\"\ndevice = \"data\"\n";
    let job =
        "[global]\nioengine=null\ndirect=1\n[reads]\nrw=randread\nsize=1m\nrate_iops=100\nruntime=2\ntime_based\n";
    let zoned = format!("{job}zonemode=zbd\nflow=1\n");
    let lines = "
        iosonar workload run p.toml -o r.replay.gz --fake-io
        iosonar workload run p.toml -o r.replay.gz --fake-io --for 1s --asap
        iosonar workload run p.toml -o r.replay.gz --fake-io --for 1s --loop
        iosonar workload run p.toml -o r.replay.gz --fake-io --for 1s --set rate=7
        iosonar workload run p.toml -o r.replay.gz --for 1s
        iosonar workload run d.toml -o r.replay.gz --for 1s -t other=target
        iosonar workload run randm-reads -o r.replay.gz --fake-io --for 1s
        iosonar workload convert a.fio a.toml
        iosonar workload convert a.fio a.toml
        iosonar workload load a.fio a.load.parquet
        iosonar workload convert zoned.fio
        iosonar workload show zoned.fio
        iosonar workload load zoned.fio x.load.parquet
        iosonar workload convert small.fio
        iosonar workload run small.fio --simulate nvme -o r.replay.gz
        iosonar workload convert a.vdb
        iosonar workload convert a.txt
        iosonar workload fit a.load.parquet a.toml
        iosonar workload fit a.load.parquet c.toml --arrivals poison
        iosonar workload fit a.load.parquet c.toml --requests 50
        echo *";
    let files = [
        ("p.toml", endless),
        ("d.toml", devices),
        ("a.fio", job),
        ("zoned.fio", &zoned),
        ("small.fio", "[a]\nrw=write\nbs=8k\nsize=4k\nfdatasync=3\n"),
        ("a.vdb", "sd=s,lun=/dev/sdb\nwd=w,sd=s,xf=8k\nrd=r,wd=w,iorate=100,elapsed=5\n"),
        ("target", ""),
    ];
    Transcript::new(&files).run(lines).check("workload");
}

#[test]
fn messages_of_cache() {
    let lines = "
        iosonar cache fill
        iosonar cache fill --entries 0
        iosonar cache fill --entries 5 --block 0
        iosonar cache fill --entries 5 --picture x.bmp
        iosonar cache fill --entries 5 --measured x.csv
        iosonar cache fill --entries 5 --measured x.csv --hit-latency 1ms
        iosonar cache fill a.load.parquet --sizes 0
        iosonar cache fill a.load.parquet --csv a.load.parquet --overwrite
        iosonar cache fill large.load.parquet --block 4k
        iosonar cache size a.load.parquet --fill-rate 200k/s
        iosonar cache size a.load.parquet --fill-rate 200k/s --upper 512k --sizes 512k
        iosonar cache size a.load.parquet --fill-rate 200k/s --upper 2M
        iosonar cache size -
        iosonar cache size a.load.parquet --fill-rate 0
        iosonar cache size a.load.parquet --upper 512
        iosonar cache size a.load.parquet --op write
        iosonar cache size a.load.parquet --block 0
        iosonar cache size a.load.parquet --csv a.load.parquet --overwrite
        echo *";
    let made =
        "iosonar generate uniform a.load.parquet --rate 100 --reads 1 --positions sequential --span 1M --requests 2560
        iosonar generate uniform large.load.parquet --rate 100 --size 1T --span 4T --requests 200";
    Transcript::new(&[]).prepare(made).run(lines).check("cache");
}
