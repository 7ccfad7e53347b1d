//! `iosonar workload load`: the open part of a program as a load.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use iosonar_trace::formats::Format;
use iosonar_trace::params::{parse_count, parse_positive_duration, parse_sectors, whole_number};
use iosonar_trace::{Kind, Metadata, Nanos, Sectors};
use iosonar_workload::filament::open_load;
use iosonar_workload::program::{Layout, Settings};

use crate::commands::generate;
use crate::console::status;
use crate::output_files;
use crate::usage::{Usage, misuse};

/// Write those requests of a program that wait for no completion as a load
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar workload load spc1 spc1.load.parquet --scale 10 --for 10m --span 500G
  iosonar workload load random-mix mix.load.gz --set rate=2k --set sizes=8k

Closed streams, and open ones whose steps wait, are left out: when they make requests depends on the
device. A program without any other stream is refused.")]
pub struct Args {
    /// Name of a ready program, a TOML file, or a job file of fio or vdbench (NAME.fio, NAME.vdb)
    #[arg(value_name = "PROGRAM")]
    program: String,

    /// The load to write: NAME.load.parquet, or NAME.load.gz for blkreplay's text
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of OUT; `iosonar formats` lists them [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = crate::tables::writable_format_named)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: output_files::Replacing,

    /// Duration of the load
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = parse_positive_duration, allow_hyphen_values = true)]
    duration: Nanos,

    /// Size of the target, which the program's devices share
    #[arg(long, value_name = "LENGTH", default_value = "100G", value_parser = parse_sectors, allow_hyphen_values = true)]
    span: Sectors,

    /// Keep the program's devices apart, each with positions of its own, instead of side by side on one device
    #[arg(long)]
    separate_devices: bool,

    /// Multiply the instances of streams, and the sizes that grow with them
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = parse_count, allow_hyphen_values = true)]
    scale: u64,

    /// Set a parameter of the program; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,

    /// Seed of the random generators: the same seed makes the same load
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX), allow_hyphen_values = true)]
    seed: u64,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, for example rate=500")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Self { program, output, to, replacing, duration, span, separate_devices, scale, set, seed } = self;
        output_files::refuse_name_of_run(&output)?;
        replacing.allows(&output)?;
        let opened = iosonar_jobfiles::open(&program).map_err(Usage)?;
        opened.left_out().iter().for_each(|line| status!("{line}"));
        opened.warnings().iter().for_each(|warning| status!("warning: {warning}"));
        if opened.streams().iter().any(|stream| stream.data.is_some()) {
            status!("note: a load has no data of writes; replay it with --compressible, --dedupe or --data");
        }
        let mut settings = Settings { seed, scale, set, layout: Layout::Together(span) };
        if separate_devices {
            settings.layout = Layout::Separate(opened.place(&settings).map_err(Usage)?.sizes());
        }
        let placement = opened.place(&settings).map_err(Usage)?;
        let devices = placement.devices();
        let (runtime, left_out) = placement.open_part().map_err(Usage)?;
        if runtime.filaments() == 0 {
            misuse!(
                "{} has no open stream: its requests wait for completions, so they have no times without a device",
                opened.name()
            );
        }
        let mut metadata = Metadata::new(Kind::Load, "generated");
        metadata.devices = devices;
        metadata.source.preamble =
            format!("Artificial load: {}", command(&program, separate_devices, duration, span, &settings));
        if !left_out.is_empty() {
            let what = if left_out.len() == 1 { "stream waits" } else { "streams wait" };
            metadata.warning(format!(
                "{} {what} for completions and cannot be part of a load: {}",
                left_out.len(),
                left_out.join(", ")
            ));
        }
        generate::write(open_load(runtime, duration, metadata), &output, to, &replacing, "use a longer --for")
    }
}

/// The command that writes this load again, with all values.
fn command(program: &str, is_separate: bool, duration: Nanos, span: Sectors, settings: &Settings) -> String {
    let mut line = format!("iosonar workload load {program} OUT --for {} --span {}s", duration.as_secs(), span.0);
    if is_separate {
        line += " --separate-devices";
    }
    line += &format!(" --scale {}", settings.scale);
    for (name, value) in &settings.set {
        line += &format!(" --set '{name}={value}'");
    }
    line + &format!(" --seed {}", settings.seed)
}
