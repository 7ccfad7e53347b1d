//! Binary files that are recognised by their first bytes.

/// First bytes, what the file is, and what to do about it.
const MAGIC: &[(&[u8], &str)] = &[
    (b"PERFILE2", "the binary file of perf record; make text of it: perf script -i FILE | iosonar … -"),
    (
        b"\x17\x08\x44tracing",
        "the binary file of trace-cmd record; make text of it: trace-cmd report -i FILE | iosonar … -",
    ),
    (b"\xd4\xc3\xb2\xa1", PACKETS),
    (b"\xa1\xb2\xc3\xd4", PACKETS),
    (b"\x4d\x3c\xb2\xa1", PACKETS),
    (b"\xa1\xb2\x3c\x4d", PACKETS),
    (b"\x0a\x0d\x0d\x0a", PACKETS),
    (b"\x1f\x8b", "compressed with gzip twice; unpack it once: gzip -dc FILE | iosonar … -"),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with zstd after another compression; unpack it twice, for example gzip -dc FILE | zstd -dc",
    ),
    (b"\x7fELF", "a program, not its output"),
    (b"SQLite format 3", "a database of SQLite; record what is done to it: iosonar record, or iosonar files record"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"ARROW1", "a table of Arrow; write it as Parquet"),
    (b"\x89HDF", "a table of HDF5; write it as Parquet with the columns of docs/schema.md"),
    (b"Obj\x01", "a table of Avro; write it as Parquet with the columns of docs/schema.md"),
    (b"ORC", "a table of ORC; write it as Parquet with the columns of docs/schema.md"),
];

const PACKETS: &str =
    "a capture of network packets; record the block device instead, on the host that has it: iosonar record";

/// What a file is that begins with `head`.
pub fn kind(head: &[u8]) -> Option<String> {
    let found = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| (*kind).to_owned());
    found.or_else(|| is_etl(head).then(|| {
        "the binary file of Windows' event tracing (.etl); make text of it on Windows: xperf -i FILE -o trace.csv -a dumper"
            .to_owned()
    }))
}

/// The first buffer of an ETL file has its size at its beginning, and at 0x30 its type; the header event follows at 0x48.
fn is_etl(head: &[u8]) -> bool {
    let number = |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let size = number(0).unwrap_or(0);
    // `_PERFINFO_TRACE_HEADER` of system events: version 2, type 1 or 2, flags 0xc0.
    let has_header = head.get(0x48..0x4c).is_some_and(|bytes| matches!(bytes, [2, 0, 1 | 2, 0xc0]));
    size.is_power_of_two() && (1 << 10..=1 << 24).contains(&size) && has_header
}
