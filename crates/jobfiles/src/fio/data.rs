//! The data of a job's writes.

use super::job::Job;
use super::requests::{Directions, Part, WRITE};
use crate::conversion::bytes_text;

/// The largest block whose share a program can say.
const MAX_BLOCK: u64 = 1 << 20;

/// The value of `data` of the job's streams, if it says one. Notes say what differs.
///
/// # Errors
/// If a value is not one of fio's.
pub(super) fn data(
    job: &Job,
    directions: Directions,
    parts: &[Part],
    notes: &mut Vec<String>,
) -> Result<Option<String>, String> {
    if directions.weights[WRITE] == 0.0 {
        return Ok(None);
    }
    let percent = |option| {
        let found = job.number(option)?.unwrap_or(0);
        if found > 100 { Err(job.error(option, "it is a percentage from 0 to 100")) } else { Ok(found) }
    };
    let (compressible, dedupe) = (percent("buffer_compress_percentage")?, percent("dedupe_percentage")?);
    let chunk = job.number("buffer_compress_chunk")?.filter(|bytes| *bytes > 0);
    let pattern = job.text("buffer_pattern");
    if compressible == 0 && dedupe == 0 {
        return match pattern {
            Some(text) => match hexadecimal(text) {
                Some(hex) => Ok(Some(format!("pattern={hex}"))),
                None => {
                    let how =
                        "write it as 0x… with two digits for each byte, at most 512, or run with --data pattern=HEX";
                    notes.push(format!("{}: buffer_pattern={text}: not converted; {how}", job.name));
                    Ok(None)
                }
            },
            None => Ok(job.flag("zero_buffers")?.then(|| "zero".to_owned())),
        };
    }
    let mut words = Vec::new();
    if compressible > 0 {
        words.push(format!("compressible={compressible}"));
        let fixed = if pattern.is_some() { "buffer_pattern" } else { "zeros" };
        notes.push(format!("{}: the compressible part of each block is 0xdeadbeef, in fio {fixed}", job.name));
    }
    if dedupe > 0 {
        words.push(format!("dedupe={}", dedupe.min(99)));
        if dedupe == 100 {
            notes.push(format!("{}: 99 % of the blocks are duplicates: some must be originals", job.name));
        }
    }
    // fio fills and repeats pieces of this size.
    let least = parts.iter().filter(|part| part.direction == WRITE).map(|part| part.sizes.smallest()).min();
    let block = chunk.into_iter().chain(least).min().unwrap_or(4096) / 512 * 512;
    let block = block.clamp(512, MAX_BLOCK);
    if block != 4096 {
        words.push(format!("block={}", bytes_text(block)));
    }
    Ok(Some(words.join(" ")))
}

/// The bytes of a pattern in hexadecimal digits: a number of them, or a text in quotes.
fn hexadecimal(text: &str) -> Option<String> {
    let hex = match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) if !text.contains('"') => text.bytes().map(|byte| format!("{byte:02x}")).collect(),
        _ => text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?.to_ascii_lowercase(),
    };
    let is_valid = hex.len() % 2 == 0 && (2..=1024).contains(&hex.len()) && hex.bytes().all(|c| c.is_ascii_hexdigit());
    is_valid.then_some(hex)
}

#[cfg(test)]
mod tests {
    use super::super::tests::converted;

    /// The value of `data` of the only stream, and the notes.
    fn data(options: &str) -> (Option<String>, String) {
        let conversion =
            converted(&format!("[a]\nrw=write\ndirect=1\nsize=1m\nioengine=psync\n{}\n", options.replace(' ', "\n")));
        let value = conversion.text.lines().find_map(|line| line.strip_prefix("data = "));
        (value.map(|value| value.trim_matches('"').to_owned()), conversion.left_out().join("\n"))
    }

    #[test]
    fn what_a_job_writes_is_the_data_of_its_streams() {
        for (options, expected) in [
            ("bs=4k", None),
            ("buffer_compress_percentage=60", Some("compressible=60")),
            ("buffer_compress_percentage=60 bs=64k", Some("compressible=60 block=64k")),
            ("buffer_compress_percentage=60 bs=64k buffer_compress_chunk=8k", Some("compressible=60 block=8k")),
            ("buffer_compress_percentage=60 bs=4k buffer_compress_chunk=1m", Some("compressible=60")),
            ("dedupe_percentage=25 bs=4k,512", Some("dedupe=25 block=512B")),
            ("dedupe_percentage=25 bssplit=8k/50:16k/50", Some("dedupe=25 block=8k")),
            ("dedupe_percentage=100 buffer_compress_percentage=5 bs=4m", Some("compressible=5 dedupe=99 block=1M")),
            ("buffer_pattern=0xDEADbeef", Some("pattern=deadbeef")),
            ("buffer_pattern=\"ab\"", Some("pattern=6162")),
            ("zero_buffers", Some("zero")),
            ("zero_buffers buffer_pattern=0x01", Some("pattern=01")),
            ("buffer_pattern=0x01 buffer_compress_percentage=50", Some("compressible=50")),
            ("rw=read buffer_compress_percentage=60", None),
        ] {
            let (found, left_out) = data(options);
            assert_eq!(found.as_deref(), expected, "{options}: {left_out}");
        }
    }

    #[test]
    fn data_that_differs_from_that_of_fio_is_noted() {
        for (options, why) in [
            (
                "buffer_compress_percentage=60",
                "note: a: the compressible part of each block is 0xdeadbeef, in fio zeros",
            ),
            ("buffer_compress_percentage=60 buffer_pattern=0x01", "is 0xdeadbeef, in fio buffer_pattern"),
            ("dedupe_percentage=100", "note: a: 99 % of the blocks are duplicates"),
            ("buffer_pattern=-12", "note: a: buffer_pattern=-12: not converted; write it as 0x"),
            ("buffer_pattern=0x123", "run with --data pattern=HEX"),
            ("dedupe_percentage=20 dedupe_mode=working_set", "dedupe_mode=working_set: copies are of earlier blocks"),
            ("buffer_compress_chunk=4k", "buffer_compress_chunk=4k: no effect in a: the job has no"),
            ("zero_buffers dedupe_percentage=1", "zero_buffers: no effect in a: "),
        ] {
            let (_, left_out) = data(options);
            assert!(left_out.contains(why), "{options}: {left_out}");
        }
    }
}
