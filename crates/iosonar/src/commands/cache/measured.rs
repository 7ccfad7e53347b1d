//! How a cache filled in a run: a read that took longer than a hit found its block not in the cache.

use std::path::Path;

use anyhow::{Result, bail};
use iosonar_trace::{IoResult, Nanos, Op, Opened, Outcome, Sectors};

use crate::human;
use crate::usage::misuse;

/// The reads of a run, in the order in which they were issued.
pub struct Measured {
    /// The numbers, from 1, of the reads that filled an entry.
    fills: Vec<u64>,
    reads: u64,
    /// Why the run is not real.
    pub fake: Option<String>,
}

impl Measured {
    /// How many reads there are.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// Filled entries after so many reads, if the run has so many.
    pub fn filled(&self, reads: u64) -> Option<u64> {
        (reads <= self.reads).then(|| self.fills.partition_point(|&fill| fill <= reads) as u64)
    }
}

pub fn read(path: &Path, hit: Nanos, block: Sectors) -> Result<Measured> {
    let Opened::Run(mut rows) = iosonar_trace::open(path)? else {
        misuse!("{} is a load; --measured needs a run: NAME.replay.parquet", path.display());
    };
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let IoResult { op: Op::Read, outcome: Outcome::Ok, issued: Some(issued), completed: Some(completed), .. } = row
        else {
            bail!(
                "{}: request {} is not a read that succeeded; a run that measures a cache has nothing else",
                path.display(),
                row.request
            );
        };
        if row.sectors != block {
            bail!(
                "{}: request {} reads {}, not a block of {}; set --block to the size of the reads",
                path.display(),
                row.request,
                human::block(row.sectors.bytes()),
                human::block(block.bytes())
            );
        }
        all.push((issued, row.request, completed - issued > hit));
    }
    if all.is_empty() {
        bail!("{}: the run has no reads", path.display());
    }
    // Rows are in the order of completion.
    all.sort_unstable();
    let fills = (1..).zip(&all).filter(|(_, (.., missed))| *missed).map(|(number, _)| number).collect();
    let fake = rows.metadata().run.as_ref().and_then(|run| run.fake.text()).map(ToString::to_string);
    Ok(Measured { fills, reads: all.len() as u64, fake })
}
