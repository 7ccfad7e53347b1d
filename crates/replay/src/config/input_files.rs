//! Refuses a target that is, or is backed by, a file that the run itself reads or writes, under any name.

use std::path::{Path, PathBuf};

use iosonar_device::node::Node;
use iosonar_device::safety::layer_nodes;
use iosonar_pacing::{Error, Result};
use iosonar_trace::journal;

use crate::config::options::Options;

/// A file of the run.
struct RunFile {
    path: PathBuf,
    role: Role,
}

#[derive(Clone, Copy)]
enum Role {
    Load,
    /// Another load that `--edit` joins.
    JoinedLoad,
    Result,
    Journal,
}

fn run_files(options: &Options) -> Vec<RunFile> {
    let joined = options.edit.iter().flat_map(|edit| edit.files());
    let load = options.load.iter().map(|path| RunFile { path: path.clone(), role: Role::Load });
    let mut files: Vec<_> = load.collect();
    files.extend(joined.map(|path| RunFile { path: path.to_owned(), role: Role::JoinedLoad }));
    files.push(RunFile { path: options.output().to_owned(), role: Role::Result });
    files.push(RunFile { path: journal::path_for(options.output()), role: Role::Journal });
    // Standard input is not a file.
    files.retain(|file| file.path != Path::new("-"));
    files
}

/// Refuses a target that is, or is backed by, a file of the run.
pub fn check(options: &Options, path: &Path, target: Node) -> Result<()> {
    let layers = layer_nodes(target);
    for RunFile { path: file, role } in run_files(options) {
        let Some(node) = Node::at(&file).filter(|node| layers.contains(node)) else { continue };
        let (path, file) = (path.display(), file.display());
        let is = if node == target { "is".to_owned() } else { format!("is backed by {file}, which is") };
        return Err(Error::Options(match role {
            Role::Load => {
                format!(
                    "{path} {is} the load and the target: the replay would overwrite its load; choose another --target"
                )
            }
            Role::JoinedLoad => format!(
                "{path} {is} a load that --edit joins (with={file}) and the target: the replay would overwrite its load; \
                 choose another --target"
            ),
            Role::Result if node == target => {
                format!("{file} is the target, which the result would replace; choose another --output")
            }
            Role::Result => format!("{path} {is} the result; choose another --output"),
            Role::Journal => format!("{path} {is} the run's journal; choose another --output"),
        }));
    }
    Ok(())
}
