//! `iosonar generate`: artificial loads. Each kind of arrivals is a subcommand, built from its definition.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, FromArgMatches};
use iosonar_trace::formats::Format;
use iosonar_trace::params::{
    ParamDefault, ParamSpec, ParamType, Settings, parse_count, parse_positive_duration, parse_sectors, parse_share,
    whole_number,
};
use iosonar_trace::{Nanos, Reader, Sectors};
use iosonar_workload::arrivals::{self, Kind};
use iosonar_workload::filament::OpenLoad;
use iosonar_workload::{Mix, Recipe, Sizes, positions, sizes};

use crate::console::status;
use crate::usage::Usage;
use crate::{output_files, tables};

/// Generate a load of bursts, ramps, random arrivals and more
pub struct Args {
    arrivals: Settings,
    common: Common,
}

/// Options of every kind of load.
#[derive(clap::Args)]
struct Common {
    /// The load to write: NAME.load.parquet, or NAME.load.gz for blkreplay's text
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The format of OUT; `iosonar formats` lists them [default: by its name]
    #[arg(long, value_name = "FORMAT", value_parser = tables::writable_format_named, help_heading = COMMON)]
    to: Option<&'static Format>,

    #[command(flatten)]
    replacing: output_files::Replacing,

    /// Duration of the load
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_positive_duration, help_heading = COMMON, allow_hyphen_values = true)]
    duration: Nanos,

    /// End the load after this many requests, if that is earlier
    #[arg(long, value_name = "COUNT", value_parser = parse_count, help_heading = COMMON, allow_hyphen_values = true)]
    requests: Option<u64>,

    /// Request size, sizes with weights: 4k:70,64k:30, or 'lognormal mean=16k sigma=1' (see `iosonar generate --help`)
    #[arg(long, value_name = "SIZES", default_value = "4k", help_heading = COMMON, allow_hyphen_values = true)]
    size: Sizes,

    /// Share of reads; the rest are writes
    #[arg(long, value_name = "SHARE", default_value = "0.7", value_parser = parse_share, help_heading = COMMON, allow_hyphen_values = true)]
    reads: f64,

    /// Operations with weights, instead of --reads: read=70,write=20,flush=5,fua=3,discard=2 (fua: a write with forced unit access)
    #[arg(long, value_name = "MIX", conflicts_with = "reads", help_heading = COMMON, allow_hyphen_values = true)]
    mix: Option<Mix>,

    /// Positions of the requests: `uniform`, `sequential`, 'zipf exponent=1.2', … (see `iosonar generate --help`)
    #[arg(long, value_name = "POSITIONS", default_value = "uniform", value_parser = positions::parse, help_heading = COMMON, allow_hyphen_values = true)]
    positions: Settings,

    /// Size of the address space; no request ends beyond it
    #[arg(long, value_name = "LENGTH", default_value = "1G", value_parser = parse_sectors, help_heading = COMMON, allow_hyphen_values = true)]
    span: Sectors,

    /// Align positions to multiples of this
    #[arg(long, value_name = "LENGTH", default_value = "4k", value_parser = parse_sectors, help_heading = COMMON, allow_hyphen_values = true)]
    align: Sectors,

    /// Seed of the random generator: the same seed makes the same load
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = whole_number::<u64>(0..=u64::MAX), help_heading = COMMON, allow_hyphen_values = true)]
    seed: u64,
}

const COMMON: &str = "Common options";

const EXAMPLES: &str = "\
Examples:
  iosonar generate bursts overload.load.parquet --duration 5m --span 100G
  iosonar generate poisson oltp.load.parquet --rate 500 --size 4k:70,64k:30 --positions zipf
  iosonar generate on-off backup.load.gz --rate 2k --on 200ms --off 5s --positions 'streams count=4'

Lengths are in bytes (4096 4k 2G), or in sectors of 512 bytes (8s). Times are in seconds (0.5)
or have a unit (20ms 5m). Rates and counts may have one as well (2k). The file keeps the command line.";

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let kinds = arrivals::KINDS.iter().map(|kind| subcommand(kind));
        command
            .about("Generate a load of bursts, ramps, random arrivals and more")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommand_value_name("KIND")
            .subcommand_help_heading("Kinds")
            .disable_help_subcommand(true)
            .subcommands(kinds)
            .after_help(format!("{}\n{}\n{EXAMPLES}", positions_help(), sizes_help()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn subcommand(kind: &'static Kind) -> Command {
    let form = &kind.form;
    let params = form.params.iter().map(|param: &'static ParamSpec| {
        let arg =
            Arg::new(param.name).long(param.name).value_name(param.takes.placeholder()).help(capitalised(param.help));
        // The error for a negative value names the value, not an unknown option.
        let arg = arg.allow_hyphen_values(true);
        let arg = match param.takes {
            ParamType::Word(words) => arg.value_parser(PossibleValuesParser::new(words)),
            _ => arg.value_parser(move |text: &str| param.parse(text).map(|_| text.to_owned())),
        };
        match param.default {
            ParamDefault::Value(text) => arg.default_value(text),
            ParamDefault::Required => arg.required(true),
            ParamDefault::Described(_) => arg,
        }
    });
    let command = Command::new(form.name).args(params);
    let example = form.example.replacen(form.name, &format!("{} x.load.parquet", form.name), 1);
    let example = example.replace(' ', " --").replacen("--x.load", "x.load", 1).replace('=', " ");
    let command = <Common as clap::Args>::augment_args(command);
    // After the common arguments, which have a description as well.
    let command = if form.details.is_empty() {
        command.about(form.about)
    } else {
        command.about(form.about).long_about(long_about(form))
    };
    command.after_help(format!("Example:\n  iosonar generate {example}"))
}

fn long_about(form: &iosonar_trace::params::Definition) -> String {
    format!("{}\n\n{}", form.about, form.details.replace('\n', " "))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn positions_help() -> String {
    let kinds = positions::KINDS.iter().map(|kind| described(&kind.form));
    format!("Positions, for --positions:\n{}", kinds.collect::<String>())
}

fn sizes_help() -> String {
    format!(
        "Distributions for --size, which also takes one size, or sizes with weights:\n{}",
        described(&sizes::LOGNORMAL)
    )
}

fn described(form: &iosonar_trace::params::Definition) -> String {
    let mut text = format!("  {:<12}  {}\n", form.name, form.about);
    for param in form.params {
        text += &format!("  {:<12}    {:<22} {} ({})\n", "", param.usage(), param.help, param.default.described());
    }
    text
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let wrong = |why: String| clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{why}\n"));
        let (name, matches) = matches.subcommand().ok_or_else(|| wrong("name a kind of load".into()))?;
        let kind = arrivals::KINDS.iter().find(|kind| kind.form.name == name);
        let kind = kind.ok_or_else(|| wrong(format!("unknown kind of load {name}")))?;
        let typed = kind.form.params.iter().filter_map(|param| {
            let text = matches.get_one::<String>(param.name)?;
            Some((param.name.to_owned(), text.clone()))
        });
        let arrivals = Settings::new(&kind.form, &typed.collect::<Vec<_>>()).map_err(wrong)?;
        Ok(Self { arrivals, common: Common::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let Common { output, to, replacing, duration, requests, size, reads, mix, positions, span, align, seed } =
            self.common;
        output_files::refuse_name_of_run(&output)?;
        replacing.allows(&output)?;
        let mix = mix.unwrap_or_else(|| Mix::of_reads(reads));
        let recipe =
            Recipe { arrivals: self.arrivals, positions, sizes: size, mix, span, align, duration, requests, seed };
        let load = recipe.generate().map_err(Usage)?;
        write(load, &output, to, &replacing, "use a higher --rate or a longer --duration")
    }
}

/// Writes a load that is generated while it is read. `remedy` is what helps against a load without requests.
pub fn write(
    load: OpenLoad,
    output: &Path,
    to: Option<&'static Format>,
    replacing: &output_files::Replacing,
    remedy: &str,
) -> Result<ExitCode> {
    let load: Box<dyn Reader<_>> = Box::new(load);
    let to = to.map_or_else(|| iosonar_trace::format_for(output), Ok)?;
    let writer = replacing.create_load(output, to, load.metadata())?;
    let (metadata, loss) = tables::copy(&format!("generating {}", output.display()), load, writer, |_| Ok(()))
        .with_context(|| format!("cannot write {}", output.display()))?;
    tables::report(output, to, &metadata, &loss);
    if metadata.counts.requests == 0 {
        status!("warning: the load has no requests: the first would arrive after its end; {remedy}");
    }
    Ok(ExitCode::SUCCESS)
}
