//! The description of a simulated device, in TOML.

use std::path::PathBuf;

use serde::Deserialize;

use super::asymmetry::AsymmetrySettings;
use super::collapse::CollapseSettings;
use super::first_write::FirstWriteSettings;
use super::garbage_collection::GarbageCollectionSettings;
use super::limit::LimitSettings;
use super::medium::StripeSettings;
use super::read_cache::ReadCacheSettings;
use super::seek::SeekSettings;
use super::stall::StallSettings;
use super::unwritten::UnwrittenSettings;
use super::values::{Count, Size, Speed, Time};
use super::write_cache::WriteCacheSettings;
use super::written::Written;
use crate::engine::service::Distribution;

/// The service time of the medium. Its name is the key in `[service]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ServiceSettings {
    /// The same for all requests.
    Constant {
        /// The time.
        time: Time,
    },
    /// Exponentially distributed.
    Exponential {
        /// Its mean.
        mean: Time,
    },
    /// Log-normally distributed.
    Lognormal {
        /// The median.
        median: Time,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// The latencies of an earlier run, by operation and size.
    Run {
        /// The run.
        file: PathBuf,
    },
    /// Seek by distance, and rotation.
    Seek(SeekSettings),
}

impl ServiceSettings {
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// What the device stands for, for people.
    #[serde(default)]
    pub description: String,
    /// Its size; 1 TiB unless set. Positions of a load beyond it wrap around.
    #[serde(default = "one_tib")]
    pub size: Size,
    /// Requests served at once; unlimited unless set.
    pub servers: Option<Count>,
    /// Bytes per second of the medium for each server, in addition to the service time; unlimited unless set.
    pub transfer: Option<Speed>,
    /// The service time.
    pub service: ServiceSettings,
    /// Limits of requests or bytes per second.
    #[serde(default)]
    pub limit: Vec<LimitSettings>,
    /// Never-written areas.
    pub unwritten: Option<UnwrittenSettings>,
    /// A read cache.
    pub read_cache: Option<ReadCacheSettings>,
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
    /// A stripe over several members.
    pub stripe: Option<StripeSettings>,
    /// A periodic stall.
    pub stall: Option<StallSettings>,
}

fn one_tib() -> Size {
    Size(1 << 40)
}

impl Description {
    /// Parses a description. An error names line and key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let description: Self = toml::from_str(text).map_err(|error| located(text, &error))?;
        description.check()?;
        Ok(description)
    }

    fn check(&self) -> Result<(), String> {
        if let ServiceSettings::Lognormal { sigma, .. } = self.service
            && !(0.0..=10.0).contains(&sigma)
        {
            return Err("[service.lognormal]: sigma must be a number from 0 to 10".into());
        }
        self.limit.iter().try_for_each(LimitSettings::check)?;
        self.read_cache.as_ref().map_or(Ok(()), ReadCacheSettings::check)?;
        self.stripe.as_ref().map_or(Ok(()), StripeSettings::check)?;
        self.stall.as_ref().map_or(Ok(()), StallSettings::check)?;
        let chunks = [self.unwritten.as_ref().map(|law| law.chunk), self.first_write.as_ref().map(|law| law.chunk)];
        match chunks.into_iter().flatten().find(|chunk| self.size.0 / chunk.0 >= Written::MAX_CHUNKS) {
            Some(Size(chunk)) => Err(format!("chunk: a device of {} bytes has too many of {chunk} bytes", self.size.0)),
            None => Ok(()),
        }
    }
}

/// An error with its line and key, on one line.
fn located(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim().replace('\n', " ");
    let Some(span) = error.span() else { return message };
    let start = span.start.min(text.len());
    let before = &text[..start];
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default();
    match line.split('#').next().unwrap_or_default().split('=').next().map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) => format!("line {number}, {key}: {message}"),
        None => format!("line {number}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_line_and_key() {
        let base = "servers = 1\n[service.constant]\ntime = \"1ms\"\n";
        Description::parse(base).unwrap();
        for (text, line, word) in [
            ("servers = 0\n[service.constant]\ntime = \"1ms\"\n", "line 1, servers", "65536"),
            ("[service.constant]\ntime = \"soon\"\n", "line 2, time", "soon"),
            ("[service.constant]\ntime = 5\n", "line 2, time", "unit"),
            ("[service.constant]\ntiem = \"1ms\"\n", "line 2, tiem", "unexpected keys"),
            ("[service.uniform]\ntime = \"1ms\"\n", "line 1, [service.uniform]", "unknown variant"),
            ("speed = 1\n[service.constant]\ntime = \"1ms\"\n", "line 1, speed", "unknown field"),
            ("servers = 1\n", "line 1", "missing field `service`"),
            ("servers = \n", "line 1, servers", ""),
        ] {
            let error = Description::parse(text).unwrap_err();
            assert!(error.starts_with(line) && error.contains(word), "{error}");
        }
        for (more, word) in [
            ("[[limit]]\niops = 5\nbytes_per_second = \"1M/s\"\n", "[[limit]]"),
            ("[read_cache]\nsize = \"1k\"\ntime = \"1us\"\n", "[read_cache]"),
            ("[stripe]\nmembers = 4\nchunk = \"64K\"\nslow_member = 4\n", "[stripe]"),
            ("[stall]\nevery = \"1s\"\nlasts = \"1s\"\n", "[stall]"),
            ("[first_write]\nchunk = 1\nextra = \"1s\"\n", "chunk"),
        ] {
            let error = Description::parse(&format!("{base}{more}")).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
