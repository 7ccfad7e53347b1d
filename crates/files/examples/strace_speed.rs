//! Reads files of strace's text and says how fast, through the sort by begin: `strace_speed [--print] FILE…`.

use std::path::Path;
use std::time::Instant;

use iosonar_files::{CallReader, strace};
use iosonar_trace::input::Input;

fn main() -> iosonar_trace::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_printed = arguments.first().is_some_and(|first| first == "--print");
    arguments.drain(..usize::from(is_printed));
    for path in arguments.iter().map(Path::new) {
        let start = Instant::now();
        let mut reader = strace::Reader::open(Input::open(path)?, &strace::Options::default())?;
        while let Some(call) = reader.next()? {
            if is_printed {
                println!("{call:?}");
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let about = reader.metadata();
        let bytes = std::fs::metadata(path).map_or(0, |status| status.len());
        println!(
            "{}: {} calls, {} bad lines, {} others, {:.1} MB in {seconds:.3} s: {:.0} MB/s, {:.2} million calls/s",
            path.display(),
            about.counts.calls,
            about.counts.bad_lines,
            about.counts.other_calls.values().sum::<u64>(),
            bytes as f64 / 1e6,
            bytes as f64 / 1e6 / seconds,
            about.counts.calls as f64 / 1e6 / seconds,
        );
        for notice in &about.notices {
            println!("  {notice}");
        }
    }
    Ok(())
}
