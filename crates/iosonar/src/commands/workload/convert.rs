//! `iosonar workload convert`: a job file of fio or vdbench as a program.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::console::{out, status};
use crate::output_files;
use crate::usage::{Usage, misuse};

/// Convert a job file of fio or a parameter file of vdbench to a program, and explain it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar workload convert oltp.fio oltp.toml
  iosonar workload convert array.vdb             what it means, without writing a file
  iosonar workload load oltp.fio x.load.parquet  a job file is also a PROGRAM

Prints a sentence for each job, the differences between program and job file, and the options that
are ignored. An option that a program cannot express is refused, with file and line.
docs/generated/job-options.md lists all options.")]
pub struct Args {
    /// The job file: NAME.fio, or NAME.vdb
    #[arg(value_name = "JOB")]
    job: String,

    /// The program to write [default: none]
    #[arg(value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    replacing: output_files::Replacing,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Self { job, output, replacing } = self;
        let Some(conversion) = iosonar_jobfiles::convert(&job).map_err(Usage)? else {
            misuse!("{job} is neither a job file of fio nor of vdbench by its name; name it NAME.fio or NAME.vdb");
        };
        let program = conversion.program(&job).map_err(Usage)?;
        for meaning in &conversion.meanings {
            out!("{meaning}");
        }
        for line in conversion.left_out() {
            out!("{line}");
        }
        if let Some(output) = output {
            replacing.allows(&output)?;
            let cannot = || format!("cannot write {}", output.display());
            let mut file = replacing.begin(&output).with_context(cannot)?;
            file.write_all(program.source().as_bytes()).with_context(cannot)?;
            file.finish().with_context(cannot)?;
            status!("wrote {}", output.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
