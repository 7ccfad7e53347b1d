//! Other names for files.

use std::path::Path;

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::transforms::Built;

use super::anonymise::for_each_path;
use super::transform::{Stage, Step, Transform, stage};
use crate::state::PathMap;
use crate::{Call, Metadata, Name};

pub static TRANSFORM: Transform = Transform::of_rows(
    Definition {
        name: "map",
        about: "Replaces the beginnings of absolute paths",
        details: "The longest old path that is the path or a directory above it is replaced, in paths, targets of symbolic\n\
                  links, working directories and paths of descriptors. Relative paths stay as they are.",
        params: &[
            ParamSpec {
                name: "old",
                takes: ParamType::Text,
                default: ParamDefault::Described("none"),
                help: "an absolute path",
            },
            ParamSpec {
                name: "new",
                takes: ParamType::Text,
                default: ParamDefault::Described("none"),
                help: "the path that replaces it",
            },
            ParamSpec {
                name: "file",
                takes: ParamType::Text,
                default: ParamDefault::Described("none"),
                help: "a file with a line `OLD NEW` for each path, as for `iosonar files replay --map`",
            },
        ],
        example: "map old=/home/alice new=/srv/data",
    },
    build,
);

fn build(settings: &Settings) -> Built<Call> {
    let text = |name| settings.optional_text(name);
    let map = match (text("old"), text("new"), text("file")) {
        (Some(old), Some(new), None) => PathMap::parse(format!("{} {}\n", quoted(old), quoted(new)).as_bytes())
            .map_err(|problem| problem.trim_start_matches("line 1: ").to_owned())?,
        (None, None, Some(file)) => PathMap::read(Path::new(file)).map_err(|error| error.to_string())?,
        _ => return Err("set old= and new=, or file=".into()),
    };
    stage(Box::new(move |metadata: &mut Metadata| {
        let map = map.clone();
        for process in &mut metadata.processes {
            let paths = process.descriptors.iter_mut().map(|descriptor| &mut descriptor.path);
            for path in paths.chain([&mut process.cwd]) {
                if let Some(mapped) = map.apply(path.as_bytes()) {
                    *path = String::from_utf8_lossy(&mapped).into_owned();
                }
            }
        }
        Box::new(Mapped(map))
    }))
}

/// A path as a word of a map.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

struct Mapped(PathMap);

impl Stage for Mapped {
    fn next(&mut self, mut call: Call) -> Step {
        for_each_path(&mut call, |path| match self.0.apply(path.as_bytes()) {
            Some(mapped) => Name::from(&mapped[..]),
            None => path.clone(),
        });
        Step::Emit(Box::new(call))
    }
}
