//! What was typed: the options of a run that differ from their defaults, by their long names, with values as a person would
//! type them. The footer keeps it for people, beside all options in the units of programs.

use iosonar_trace::Nanos;
use iosonar_trace::params::time_typed;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{DepthFor, Options};
use crate::issuer::conflicts::Strong;
use crate::pipeline::payload::{DataSpec, Filler};

use crate::issuer::Think;

impl Options {
    /// Options by name: true where they take no value, a list where they were given several times. Load and result are not
    /// among them.
    pub fn typed(&self) -> Map<String, Value> {
        let default = Self::new(self.load.clone(), "none".into(), self.output.clone());
        let mut all = Map::new();
        let mut set = |name: &str, is_set: bool, value: Value| {
            if is_set {
                all.insert(name.to_owned(), value);
            }
        };
        let targets: Vec<String> = self.targets.iter().map(ToString::to_string).collect();
        set("target", targets != ["none"], targets.into());
        set("edit", self.edit.is_some(), text(self.edit.as_ref()));
        set("fit", self.fit != default.fit, name_of(self.fit));
        set("align", self.align != default.align, name_of(self.align));
        set("start", self.window.start != Nanos::ZERO, time(self.window.start));
        set("end", self.window.end != Nanos::MAX, time(self.window.end));
        set("speedup", self.speedup != default.speedup, self.speedup.to_string().into());
        set("closed", self.closed == Some(Think::AsLoad), json!("think"));
        set("closed", self.closed == Some(Think::Never), json!("no-think"));
        set("for", self.run_for.is_some(), time(self.run_for.unwrap_or_default()));
        set("perturb", self.perturb.is_some(), text(self.perturb.as_ref()));
        set("seed", self.seed != default.seed, self.seed.to_string().into());
        let depth = format!("{}{}", if self.depth_for == DepthFor::Each { "each=" } else { "" }, self.depth);
        set("depth", (self.depth, self.depth_for) != (default.depth, default.depth_for), depth.into());
        set("conflicts", self.conflicts != default.conflicts, name_of(self.conflicts));
        let strong = match self.strong {
            Strong::Writes => "0",
            Strong::AnyWrite => "1",
            Strong::Everything => "2",
        };
        set("strong", self.strong != default.strong, strong.into());
        set("buffers", self.buffers != default.buffers, mebibytes(self.buffers));
        set("ahead", self.ahead_requests != default.ahead_requests, self.ahead_requests.to_string().into());
        set("ahead-time", self.ahead != default.ahead, time(self.ahead));
        set("grace", self.grace != default.grace, time(self.grace));
        set("output-offset", self.output_offset != default.output_offset, time(self.output_offset));
        set("wait", self.wait.is_some(), name_of(self.wait));
        set("isolate", !self.isolate.is_empty(), json!(self.isolate));
        set("verify", self.verify != default.verify, name_of(self.verify));
        set("verify-memory", self.verify_memory != default.verify_memory, mebibytes(self.verify_memory));
        for (name, is_set) in [
            ("reads-only", self.reads_only),
            ("asap", self.asap),
            ("loop", self.again),
            ("fake-io", self.method.fake_io),
            ("dry-run", self.method.dry_run),
            ("poll", self.method.poll),
            ("sqpoll", self.method.sqpoll),
            ("no-o-direct", self.method.no_o_direct),
            ("o-sync", self.method.o_sync),
            ("verbose", self.verbose),
            ("no-sample", self.no_sample),
            ("force", self.force),
            ("overwrite", self.overwrite),
        ] {
            set(name, is_set, true.into());
        }
        // These two choose their engine.
        let is_told = self.method.simulate.is_some() || self.method.fake_io;
        set("engine", self.method.engine.is_some() && !is_told, name_of(self.method.engine));
        set("simulate", self.method.simulate.is_some(), text(self.method.simulate.as_ref()));
        set("workers", self.method.workers.is_some(), text(self.method.workers.as_ref()));
        for (name, value) in data(&self.data) {
            set(name, true, value.into());
        }
        all
    }
}

fn text(value: Option<&impl ToString>) -> Value {
    value.map_or(Value::Null, |value| value.to_string().into())
}

/// Of one of a few words.
fn name_of(word: impl Serialize) -> Value {
    json!(word)
}

fn time(time: Nanos) -> Value {
    time_typed(time).into()
}

fn mebibytes(bytes: u64) -> Value {
    (bytes >> 20).to_string().into()
}

fn data(spec: &DataSpec) -> Vec<(&'static str, String)> {
    match spec {
        DataSpec::Zero => vec![("data", "zero".into())],
        DataSpec::Pattern { hex } => vec![("data", format!("pattern={hex}"))],
        DataSpec::Random { random_pct, filler, dedupe_pct } => {
            let (random, dedupe) = (random_pct.get(), dedupe_pct.get());
            let part = match filler {
                Filler::Deadbeef if random < 100 => Some(("compressible", (100 - random).to_string())),
                Filler::Zero => Some(("fill-random", random.to_string())),
                Filler::Deadbeef => None,
            };
            part.into_iter().chain((dedupe > 0).then(|| ("dedupe", dedupe.to_string()))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options::Wait;
    use crate::engine::choice::{Engine, Method};
    use crate::pipeline::payload::Asked;
    use crate::schedule::Window;

    #[test]
    fn what_was_not_typed_is_left_out() {
        let options = Options::new("a.load.gz".into(), "/dev/sdb".into(), "a.replay.gz".into());
        assert_eq!(Value::Object(options.typed()), json!({"target": ["/dev/sdb"]}));
    }

    #[test]
    fn values_are_as_they_are_typed() {
        let mut options = Options::new("a.load.gz".into(), "none".into(), "a.replay.gz".into());
        options.window = Window { start: Nanos(600_000_000_000), end: Nanos(900_500_000_000) };
        (options.depth, options.depth_for) = (16, DepthFor::Each);
        (options.ahead_requests, options.ahead) = (100, Nanos(1_500_000));
        (options.speedup, options.closed, options.wait) = (2.5, Some(Think::Never), Some(Wait::Hybrid));
        options.data = Asked { compressible: "30".parse().ok(), ..Asked::default() }.spec().unwrap();
        let simulate = Some("constant=200us servers=8".parse().unwrap());
        options.method = Method { engine: Some(Engine::Simulate), simulate, ..Method::default() };
        options.force = true;
        let expected = json!({
            "start": "10m", "end": "900500ms", "depth": "each=16", "ahead": "100", "ahead-time": "1500us", "speedup": "2.5",
            "closed": "no-think", "wait": "hybrid", "compressible": "30", "simulate": "constant=200us servers=8",
            "force": true,
        });
        assert_eq!(Value::Object(options.typed()), expected);
    }

    /// The names of all options, in the units of programs: nothing that no option is called.
    #[test]
    fn options_have_the_names_of_the_command_line() {
        let options = Options::new("a.load.gz".into(), "x".into(), "a.replay.gz".into());
        let kept = json!(options);
        assert_eq!((&kept["start"], &kept["end"]), (&json!(0), &Value::Null));
        assert_eq!((&kept["ahead"], &kept["ahead_time"]), (&json!(4096), &json!(1_000_000_000)));
        assert!(kept.get("window").is_none() && kept.get("ahead_requests").is_none(), "{kept}");
    }
}
