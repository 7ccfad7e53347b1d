//! A target must be none of the files that the run itself reads or writes, under whatever name, nor stand on one of them.

use std::path::{Path, PathBuf};

use crate::config::options::Options;
use crate::device::node::Node;
use crate::device::safety::stands_on;
use crate::error::{Error, Result};
use crate::result::journal;

/// A file of the run.
struct Own {
    path: PathBuf,
    is: Is,
}

/// What it is for the run.
#[derive(Clone, Copy)]
enum Is {
    Load,
    Joined,
    Result,
    Journal,
}

/// All of them.
fn of_run(options: &Options) -> Vec<Own> {
    let joined = options.edit.iter().flat_map(|edit| edit.files());
    let mut files = vec![Own { path: options.load.clone(), is: Is::Load }];
    files.extend(joined.map(|path| Own { path: path.to_owned(), is: Is::Joined }));
    files.push(Own { path: options.output.clone(), is: Is::Result });
    files.push(Own { path: journal::path_for(&options.output), is: Is::Journal });
    // Standard input is no file.
    files.retain(|file| file.path != Path::new("-"));
    files
}

/// Refuses a target, called `path`, that is one of the run's files.
pub fn check(options: &Options, path: &Path, target: Node) -> Result<()> {
    let below = stands_on(target);
    for Own { path: own, is } in of_run(options) {
        let Some(node) = Node::at(&own).filter(|node| below.contains(node)) else { continue };
        let (target_shown, own) = (path.display(), own.display());
        let stands = if node == target { "is".to_owned() } else { format!("is backed by {own}, which is") };
        return Err(Error::Options(match is {
            Is::Load => format!(
                "{target_shown} {stands} the load and the target: the replay would overwrite what it reads; name another \
                 --target"
            ),
            Is::Joined => format!(
                "{target_shown} {stands} a load that --edit joins (with={own}), and the target: the replay would overwrite \
                 what it reads; name another --target"
            ),
            Is::Result if node == target => {
                format!("{own} is the target, which the result would replace; choose another --output")
            }
            Is::Result => format!("{target_shown} {stands} the result; choose another --output"),
            Is::Journal => format!("{target_shown} {stands} the run's journal; choose another --output"),
        }));
    }
    Ok(())
}
