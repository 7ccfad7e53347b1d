//! The end of a run: what the rooms left becomes the result, and so does the journal of a run that never ended.

use std::path::Path;

use iosonar_trace::{Metadata, create_run};
use serde_json::json;

use super::Finished;
use super::looping::Looped;
use crate::advice;
use crate::device::Device;
use crate::device::meter::Counted;
use crate::error::{Error, Result};
use crate::feeder::Fed;
use crate::issuer::{Pace, Tally};
use crate::journal::Journal;
use crate::options::Options;
use crate::recorder::Recorded;
use crate::statistics::Counter;

/// What the rooms left, and what was to be said before they ended.
pub struct Ended {
    pub fed: (Fed, Result<()>),
    pub looped: Looped,
    pub recorded: Recorded,
    /// What the devices counted themselves.
    pub counted: Vec<Counted>,
    pub warnings: Vec<String>,
}

/// Makes the result of what the rooms left.
pub fn conclude(options: &Options, devices: &[Device], mut metadata: Metadata, ended: Ended) -> Result<Finished> {
    let Ended { fed: (fed, read), looped: (tally, looped), recorded, counted, mut warnings } = ended;
    let device = &devices[0];
    if let Err(error) = read {
        warnings.push(format!("the load could be read only in part: {error}"));
    }
    if let Err(error) = looped {
        warnings.push(format!("the target failed as a whole, and the run ended there: {error}"));
        metadata.complete = false;
    }
    if let Some(error) = recorded.failure {
        warnings.push(format!(
            "the record could not be written ({error}), and the run ended there: {} rows are missing from it",
            recorded.counter.unrecorded
        ));
        metadata.complete = false;
    }
    metadata.complete &= fed.load_complete;
    let pace = options.pace();
    let statistics = recorded.counter.close(&fed, &tally, device.geometry, pace == Pace::Timed, metadata.complete);
    warnings.extend(advice::after(options, device, &fed, &statistics));
    // With several targets nobody knows which of them had how many of the replay's.
    if let [counted] = &counted[..] {
        warnings.extend(advice::seen(&statistics, counted));
    }
    metadata.counts.bad_lines = fed.bad_lines;
    metadata.notices.clone_from(&fed.notices);
    let run = metadata.run.as_mut().expect("made with the run");
    run["data"]["written"] = json!(fed.written);
    run["warnings"] = json!(warnings);
    run["mean_in_flight"] = json!(advice::mean_in_flight(&statistics));
    run["device_counters"] = json!(counted);
    run["statistics"] = serde_json::to_value(&statistics).expect("statistics are plain data");
    let journal = recorded.journal.close();
    warnings.extend(publish(&journal, &options.output, &metadata, options.verbose)?);
    Ok(Finished { output: options.output.clone(), statistics, warnings })
}

/// Turns a journal into the result, and removes it when that is whole. Returns what the result could not take.
fn publish(journal: &Path, output: &Path, metadata: &Metadata, verbose: bool) -> Result<Vec<String>> {
    let kept = |error: Error| {
        Error::Options(format!(
            "{error}\nThe result could not be written, but nothing is lost: make room, then `iosonar recover {}`",
            journal.display()
        ))
    };
    let losses = write_result(journal, output, metadata, verbose).map_err(kept)?;
    std::fs::remove_file(journal).map_err(|e| Error::file(journal, e))?;
    Ok(losses)
}

fn write_result(journal: &Path, output: &Path, metadata: &Metadata, verbose: bool) -> Result<Vec<String>> {
    let mut rows = Journal::open(journal)?;
    let mut writer = create_run(output, metadata)?;
    while let Some(mut record) = rows.read().map_err(|e| Error::file(journal, e))? {
        if !verbose {
            (record.ready, record.submitted) = (None, None);
        }
        writer.write(&record)?;
    }
    let mut losses = writer.finish(metadata)?;
    if rows.damaged > 0 {
        losses.push(format!("{} entries of the journal are damaged; their rows are missing", rows.damaged));
    }
    Ok(losses)
}

/// Makes a result of a journal whose run never ended. Its statistics are counted anew; it is marked as cut short.
pub fn recover(journal: &Path, output: &Path) -> Result<Finished> {
    let mut rows = Journal::open(journal)?;
    let mut metadata = rows.header.clone();
    let mut counter = Counter::new();
    let mut max_end_sector = 0;
    let mut tally = Tally::default();
    while let Some(record) = rows.read().map_err(|e| Error::file(journal, e))? {
        max_end_sector = max_end_sector.max((record.source_sector + record.sectors).0);
        tally.max_in_flight = tally.max_in_flight.max(record.in_flight);
        counter.add(&record);
    }
    let fed = Fed { max_end_sector, ..Fed::default() };
    let run = metadata.run.get_or_insert_with(|| json!({}));
    let sectors = run["target"]["sectors"].as_u64().unwrap_or(1);
    let geometry = crate::placement::Geometry { sectors, block_sectors: 1 };
    let timed = run["options"]["asap"] != json!(true);
    let statistics = counter.close(&fed, &tally, geometry, timed, false);
    let mut warnings = vec!["the run did not end by itself: this was recovered from its journal".to_owned()];
    run["warnings"] = json!(warnings);
    run["statistics"] = serde_json::to_value(&statistics).expect("statistics are plain data");
    let verbose = run["options"]["verbose"] == json!(true);
    metadata.complete = false;
    warnings.extend(publish(journal, output, &metadata, verbose)?);
    Ok(Finished { output: output.to_owned(), statistics, warnings })
}
