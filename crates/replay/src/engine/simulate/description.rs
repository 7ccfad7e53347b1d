//! The description of a simulated device, in TOML.

use std::path::PathBuf;

use iosonar_trace::params::{Key, Section, Takes, Text};

use super::asymmetry::AsymmetrySettings;
use super::collapse::CollapseSettings;
use super::first_write::FirstWriteSettings;
use super::garbage_collection::GarbageCollectionSettings;
use super::limit::LimitSettings;
use super::medium::StripeSettings;
use super::read_cache::ReadCacheSettings;
use super::scheduler::SchedulerSettings;
use super::seek::SeekSettings;
use super::stall::StallSettings;
use super::unwritten::UnwrittenSettings;
use super::values::{Count, Size, Speed, Time};
use super::write_cache::WriteCacheSettings;
use super::written::Written;
use crate::engine::service::Distribution;

/// The keys of a description.
pub static DEVICE: &[Key] = &[
    Key::new("description", Takes::Text, "What the device stands for, for people"),
    Key::new("size", Takes::Number, "Its size (default 1T); positions of a load beyond it wrap around"),
    Key::new("servers", Takes::Number, "Requests served at once (default: unlimited)"),
    Key::new(
        "transfer",
        Takes::Number,
        "Bytes per second of each server, in addition to the service time (default: unlimited)",
    ),
    Key::new("service", Takes::OneOf(SERVICE), "The service time").required(),
    Key::new("limit", Takes::Tables(LimitSettings::KEYS), "Limits of requests or bytes per second, with burst buckets"),
    Key::new("unwritten", Takes::Table(UnwrittenSettings::KEYS), "Reads of areas that were never written"),
    Key::new(
        "read_cache",
        Takes::TableOrTables(ReadCacheSettings::KEYS),
        "A read cache, or several, the upper one first",
    ),
    Key::new("write_cache", Takes::Table(WriteCacheSettings::KEYS), "A write-back cache"),
    Key::new("first_write", Takes::Table(FirstWriteSettings::KEYS), "Slow first writes"),
    Key::new("asymmetry", Takes::Table(AsymmetrySettings::KEYS), "Factors of the service times of reads and writes"),
    Key::new("collapse", Takes::Table(CollapseSettings::KEYS), "Queue collapse: service times grow beyond a depth"),
    Key::new(
        "garbage_collection",
        Takes::Table(GarbageCollectionSettings::KEYS),
        "Pauses of the medium after so many written bytes",
    ),
    Key::new("scheduler", Takes::Table(SchedulerSettings::KEYS), "Which waiting request a server takes"),
    Key::new("stripe", Takes::Table(StripeSettings::KEYS), "Several members, one of which may be slow"),
    Key::new("stall", Takes::Table(StallSettings::KEYS), "A periodic stall of the whole device"),
];

/// The kinds of service time.
static SERVICE: &[Key] = &[
    Key::new("constant", Takes::Table(CONSTANT), "The same for all requests"),
    Key::new("exponential", Takes::Table(EXPONENTIAL), "Exponentially distributed"),
    Key::new("lognormal", Takes::Table(LOGNORMAL), "Log-normally distributed"),
    Key::new("run", Takes::Table(RUN), "The latencies of an earlier run, by operation and size"),
    Key::new("seek", Takes::Table(SeekSettings::KEYS), "Seek by distance, and rotation"),
];

static CONSTANT: &[Key] = &[Key::new("time", Takes::Number, "The time").required()];
static EXPONENTIAL: &[Key] = &[Key::new("mean", Takes::Number, "The mean").required()];
static LOGNORMAL: &[Key] = &[
    Key::new("median", Takes::Number, "The median").required(),
    Key::new("sigma", Takes::Number, "Standard deviation of the natural logarithm, from 0 to 10").required(),
];
static RUN: &[Key] =
    &[Key::new("file", Takes::Text, "The result of a replay; relative to the current directory").required()];

/// The service time of the medium. Its name is the key in `[service]`.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceSettings {
    /// The same for all requests.
    Constant {
        /// The time of every request.
        time: Time,
    },
    /// Exponentially distributed.
    Exponential {
        /// The mean of all times.
        mean: Time,
    },
    /// Log-normally distributed.
    Lognormal {
        /// Half of all times are at most this.
        median: Time,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// The latencies of an earlier run, by operation and size.
    Run {
        /// The file of the run whose latencies are drawn.
        file: PathBuf,
    },
    /// Seek by distance, and rotation.
    Seek(SeekSettings),
}

impl ServiceSettings {
    fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let set: Vec<_> = SERVICE.iter().filter(|key| section.has(key.name)).collect();
        let [Key { name, takes: Takes::Table(keys), .. }] = set[..] else {
            let Some(second) = set.get(1) else {
                let kinds: Vec<_> = SERVICE.iter().map(|key| format!("[{}.{}]", section.path, key.name)).collect();
                return Err(section.error("", &format!("missing; add one of {}", kinds.join(" "))));
            };
            return Err(section.error(second.name, "a second kind of service time; remove one"));
        };
        let of = section.table(name, keys)?.expect("it is set");
        Ok(match *name {
            "constant" => Self::Constant { time: of.required("time", Time::parse)? },
            "exponential" => Self::Exponential { mean: of.required("mean", Time::parse)? },
            "lognormal" => Self::Lognormal {
                median: of.required("median", Time::parse)?,
                sigma: of.required("sigma", parse_sigma)?,
            },
            "run" => Self::Run { file: of.required("file", |text| Ok(text.into()))? },
            _ => Self::Seek(SeekSettings::read(&of)?),
        })
    }

    /// The distribution; an error is the settings of a disk.
    pub fn distribution(&self) -> Result<Distribution, &SeekSettings> {
        Ok(match self {
            Self::Constant { time } => Distribution::Constant(time.0),
            Self::Exponential { mean } => Distribution::Exponential(mean.0),
            Self::Lognormal { median, sigma } => Distribution::LogNormal { median: median.0, sigma: *sigma },
            Self::Run { file } => Distribution::Run(file.clone()),
            Self::Seek(settings) => return Err(settings),
        })
    }
}

/// A simulated device.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// What the device stands for, for people.
    pub description: String,
    /// Its size; 1 TiB unless set. Positions of a load beyond it wrap around.
    pub size: Size,
    /// Requests served at once; unlimited unless set.
    pub servers: Option<Count>,
    /// Bytes per second of the medium for each server, in addition to the service time; unlimited unless set.
    pub transfer: Option<Speed>,
    /// How long a request occupies a server.
    pub service: ServiceSettings,
    /// Limits of requests or bytes per second.
    pub limit: Vec<LimitSettings>,
    /// Never-written areas.
    pub unwritten: Option<UnwrittenSettings>,
    /// Read caches, the upper one first.
    pub read_cache: Vec<ReadCacheSettings>,
    /// A write-back cache.
    pub write_cache: Option<WriteCacheSettings>,
    /// Slow first writes.
    pub first_write: Option<FirstWriteSettings>,
    /// Read/write asymmetry.
    pub asymmetry: Option<AsymmetrySettings>,
    /// Queue collapse.
    pub collapse: Option<CollapseSettings>,
    /// Garbage collection.
    pub garbage_collection: Option<GarbageCollectionSettings>,
    /// What chooses among waiting requests.
    pub scheduler: Option<SchedulerSettings>,
    /// A stripe over several members.
    pub stripe: Option<StripeSettings>,
    /// A periodic stall.
    pub stall: Option<StallSettings>,
}

/// On all members together.
const MAX_SERVERS: u64 = 1 << 20;

fn parse_sigma(text: &str) -> Result<f64, String> {
    let sigma = text.parse().ok().filter(|sigma| (0.0..=10.0).contains(sigma));
    sigma.ok_or_else(|| format!("`{text}` is not a number from 0 to 10"))
}

impl Description {
    /// Parses a description. `file` names it in errors.
    ///
    /// # Errors
    /// With the file, the line and the key.
    pub fn parse(file: &str, source: &str) -> Result<Self, String> {
        let text = Text { file, source, set: None, origins: None };
        let table = text.parse()?;
        Self::read(&Section::new(&text, 0, String::new(), table.get_ref(), DEVICE)?)
    }

    fn read(section: &Section<'_, '_>) -> Result<Self, String> {
        let size = section.parsed("size", Size::parse)?.unwrap_or(Size(1 << 40));
        let missing = || section.error("service", "missing; add for example [service.constant] with time = \"200us\"");
        let service = section.table("service", SERVICE)?.ok_or_else(missing)?;
        let mut limit = Vec::new();
        for (number, (at, table)) in section.tables("limit")?.into_iter().enumerate() {
            let path = format!("limit {}", number + 1);
            limit.push(LimitSettings::read(&Section::new(section.text, at, path, table, LimitSettings::KEYS)?)?);
        }
        let fits = |own: &Section<'_, '_>, Size(chunk): Size| {
            let why = || own.error("chunk", &format!("too small for a device of {} bytes; increase it", size.0));
            if size.0 / chunk < Written::MAX_CHUNKS { Ok(()) } else { Err(why()) }
        };
        let servers = section.parsed("servers", Count::parse)?;
        let stripe = law(section, "stripe", StripeSettings::KEYS, StripeSettings::read)?;
        let all =
            stripe.as_ref().map_or(1, |stripe| u64::from(stripe.members.0)) * servers.map_or(1, |n| u64::from(n.0));
        if all > MAX_SERVERS {
            let why = format!("{all} servers on all members are more than the limit of {MAX_SERVERS}; use fewer");
            return Err(section.error("servers", &why));
        }
        let scheduler = law(section, "scheduler", SchedulerSettings::KEYS, SchedulerSettings::read)?;
        if scheduler.is_some() && (servers.is_none() || stripe.is_some()) {
            return Err(section.error("scheduler", "it needs `servers` for which requests wait, and no stripe"));
        }
        Ok(Self {
            description: section.text("description")?.unwrap_or_default(),
            size,
            servers,
            transfer: section.parsed("transfer", Speed::parse)?,
            service: ServiceSettings::read(&service)?,
            limit,
            unwritten: law(section, "unwritten", UnwrittenSettings::KEYS, |own| {
                UnwrittenSettings::read(own).and_then(|settings| fits(own, settings.chunk).map(|()| settings))
            })?,
            read_cache: ReadCacheSettings::read_all(&section.one_or_more("read_cache", ReadCacheSettings::KEYS)?)?,
            write_cache: law(section, "write_cache", WriteCacheSettings::KEYS, WriteCacheSettings::read)?,
            first_write: law(section, "first_write", FirstWriteSettings::KEYS, |own| {
                FirstWriteSettings::read(own).and_then(|settings| fits(own, settings.chunk).map(|()| settings))
            })?,
            asymmetry: law(section, "asymmetry", AsymmetrySettings::KEYS, AsymmetrySettings::read)?,
            collapse: law(section, "collapse", CollapseSettings::KEYS, CollapseSettings::read)?,
            garbage_collection: law(
                section,
                "garbage_collection",
                GarbageCollectionSettings::KEYS,
                GarbageCollectionSettings::read,
            )?,
            scheduler,
            stripe,
            stall: law(section, "stall", StallSettings::KEYS, StallSettings::read)?,
        })
    }
}

fn law<T>(
    section: &Section<'_, '_>,
    name: &str,
    keys: &'static [Key],
    read: impl FnOnce(&Section<'_, '_>) -> Result<T, String>,
) -> Result<Option<T>, String> {
    section.table(name, keys)?.as_ref().map(read).transpose()
}

#[cfg(test)]
mod tests {
    use iosonar_trace::params::schema_of;

    use super::*;

    #[test]
    fn errors_name_file_line_and_key() {
        let base = "servers = 1\n[service.constant]\ntime = \"1ms\"\n";
        Description::parse("d.toml", base).unwrap();
        let refused = |text: &str| Description::parse("d.toml", text).unwrap_err();
        for (text, start, word) in [
            ("servers = 0\n[service.constant]\ntime = \"1ms\"\n", "d.toml:1: servers: ", "1 to 65536"),
            ("[service.constant]\ntime = \"soon\"\n", "d.toml:2: service.constant, time: ", "soon"),
            ("[service.constant]\ntime = 5\n", "d.toml:2: service.constant, time: ", "unit"),
            ("[service.constant]\ntime = [5]\n", "d.toml:2: service.constant, time: ", "found array"),
            ("[service.constant]\ntiem = \"1ms\"\n", "d.toml:2: service.constant, tiem: ", "did you mean time?"),
            ("[service.constant]\n", "d.toml:1: service.constant, time: ", "missing"),
            ("[service.uniform]\ntime = \"1ms\"\n", "d.toml:1: service, uniform: ", "unknown key"),
            ("[service]\n", "d.toml:1: service: ", "[service.constant]"),
            ("service = \"1ms\"\n", "d.toml:1: service: ", "[service]"),
            ("speed = 1\n[service.constant]\ntime = \"1ms\"\n", "d.toml:1: speed: ", "unknown key"),
            ("servers = 1\n", "d.toml:1: service: ", "missing"),
            ("servers = \n", "d.toml:1: ", ""),
            (
                "servers = 65536\nservice.constant.time = \"1s\"\n[stripe]\nmembers = 65536\nchunk = 1\n",
                "d.toml:1: servers: ",
                "limit",
            ),
        ] {
            let error = refused(text);
            assert!(error.starts_with(start) && error.contains(word), "{error}");
        }
        for (more, start) in [
            ("[service.seek]\nrpm = 1\n", "d.toml:4: service, seek: a second"),
            ("[service.lognormal]\nmedian = \"1s\"\nsigma = 11\n", "d.toml:4: service, lognormal: a second"),
            ("[[limit]]\niops = 5\nbytes_per_second = \"1M/s\"\n", "d.toml:6: limit 1, bytes_per_second: "),
            ("[[limit]]\niops = 5\n[[limit]]\n", "d.toml:6: limit 2, iops: missing"),
            ("[[limit]]\niops = 5\nburst_bytes = 5\n", "d.toml:6: limit 1, burst_bytes: "),
            ("[[limit]]\niops = 5\nburst_requests = 0.5\n", "d.toml:6: limit 1, burst_requests: "),
            ("[limit]\niops = 5\n", "d.toml:4: limit: expected tables; write [[limit]]"),
            ("[read_cache]\nsize = \"1k\"\ntime = \"1us\"\n", "d.toml:5: read_cache, size: smaller than a block"),
            ("[read_cache]\nsize = \"1T\"\ntime = \"1us\"\n", "d.toml:5: read_cache, size: 268435456 blocks"),
            ("[read_cache]\nsize = \"1M\"\ntime = 0\nexclusive = true\n", "d.toml:7: read_cache, exclusive: no cache"),
            (
                "[[read_cache]]\nsize = \"1M\"\ntime = 0\n[[read_cache]]\nsize = \"1M\"\n",
                "d.toml:7: read_cache 2, time: missing",
            ),
            (
                "[[read_cache]]\nsize = \"1M\"\ntime = 0\n[[read_cache]]\nsize = \"4M\"\ntime = 0\nblock = \"8K\"\n\
                 exclusive = true\n",
                "d.toml:10: read_cache 2, block: an exclusive cache has blocks of 4096 bytes",
            ),
            (
                "[[read_cache]]\nsize = \"40G\"\ntime = 0\n[[read_cache]]\nsize = \"40G\"\ntime = 0\nexclusive = true\n",
                "d.toml:8: read_cache 2, size: 20971520 blocks, with those above,",
            ),
            ("[stripe]\nmembers = 4\nchunk = \"64K\"\nslow_member = 4\n", "d.toml:7: stripe, slow_member: 4 is out of"),
            ("[stripe]\nmembers = 4\nchunk = \"64K\"\nfactor = 4\n", "d.toml:7: stripe, factor: "),
            ("[stall]\nevery = \"1s\"\nlasts = \"1s\"\n", "d.toml:6: stall, lasts: "),
            ("[first_write]\nchunk = 1\nextra = \"1s\"\n", "d.toml:5: first_write, chunk: too small"),
            ("[scheduler]\n[stripe]\nmembers = 2\nchunk = 1\n", "d.toml:4: scheduler: it needs"),
            ("[write_cache]\nbattery = 1\n", "d.toml:4: write_cache, size: missing"),
        ] {
            let error = refused(&format!("{base}{more}"));
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn a_text_may_contain_a_dollar_sign() {
        let text = "description = \"for $5\"\nservice.constant.time = \"1ms\"\n";
        assert_eq!(Description::parse("d.toml", text).unwrap().description, "for $5");
    }

    /// After a change of the keys: `IOSONAR_UPDATE_SCHEMA=1 cargo test --workspace the_schema`.
    #[test]
    fn the_schema_in_the_documentation_has_all_keys() {
        let mut schema = schema_of(DEVICE);
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = "A simulated device of `iosonar replay --simulate`, in TOML".into();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas/simulated-device.json");
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("IOSONAR_UPDATE_SCHEMA").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == text,
            "docs/schemas/simulated-device.json is out of date"
        );
    }

    #[test]
    fn the_documentation_describes_every_key() {
        let text = include_str!("../../../../../docs/simulate.md");
        let mut keys: Vec<&Key> = DEVICE.iter().collect();
        while let Some(key) = keys.pop() {
            let name = key.name;
            let forms = [
                format!("`{name}`"),
                format!("[{name}]"),
                format!("[{name}."),
                format!("`{name} = "),
                format!("\n{name} = "),
            ];
            assert!(forms.iter().any(|form| text.contains(form)), "docs/simulate.md does not mention `{name}`");
            if let Takes::Table(inner) | Takes::OneOf(inner) | Takes::Tables(inner) | Takes::TableOrTables(inner) =
                key.takes
            {
                keys.extend(inner);
            }
        }
    }
}
