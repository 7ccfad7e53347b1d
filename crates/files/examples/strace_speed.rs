//! Reads files of strace's text and says how fast, through the order by begin: `strace_speed [--print] FILE…`.
//!
//! Speeds are given by processor time, which other programs do not change much, and by the clock.

use std::path::Path;
use std::time::Instant;

use iosonar_files::strace;
use iosonar_trace::Reader as _;
use iosonar_trace::input::Input;
use rustix::time::{ClockId, clock_gettime};

fn main() -> iosonar_trace::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_printed = arguments.first().is_some_and(|first| first == "--print");
    arguments.drain(..usize::from(is_printed));
    for path in arguments.iter().map(Path::new) {
        let (start, processor) = (Instant::now(), processor_seconds());
        let mut reader = strace::Reader::open(Input::open(path)?, &strace::Options::default())?;
        while let Some(call) = reader.next()? {
            if is_printed {
                println!("{call:?}");
            }
        }
        let (seconds, processor) = (start.elapsed().as_secs_f64(), processor_seconds() - processor);
        let about = reader.metadata();
        let bytes = std::fs::metadata(path).map_or(0, |status| status.len());
        println!(
            "{}: {} calls, {} bad lines, {} others, {:.1} MB in {processor:.3} s of processor time ({seconds:.3} s): {:.0} MB/s, \
             {:.2} million calls/s",
            path.display(),
            about.counts.calls,
            about.counts.bad_lines,
            about.counts.other_calls.values().sum::<u64>(),
            bytes as f64 / 1e6,
            bytes as f64 / 1e6 / processor,
            about.counts.calls as f64 / 1e6 / processor,
        );
        for warning in &about.warnings {
            println!("  {warning}");
        }
    }
    Ok(())
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
