//! Options that `files check` and `files prepare` share: the trace, the root, and what the trace needs below it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use iosonar_files::state::{Ignore, Options, PathMap};
use iosonar_files::tree::{Plan, Prescan, RootPath, Tree, beside, prescan};
use iosonar_files::{Metadata, Name, OpenOptions};
use iosonar_trace::params::whole_number;

use crate::human;
use crate::progress::Rows;

#[derive(clap::Args)]
pub struct NeedArgs {
    /// The trace: NAME.calls.parquet, or strace text
    pub trace: PathBuf,
    /// The directory of the replay: /home/u/x of the trace is DIR/home/u/x
    #[arg(long, value_name = "DIR")]
    pub root: PathBuf,
    /// Replay paths of the trace at other paths below the root: a file with lines OLD NEW. The longest OLD that is the path,
    /// or a directory above it, is replaced by NEW
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Leave out calls on these files: a pattern on each line, with *, ** and ?
    #[arg(long, value_name = "FILE")]
    pub ignore: Option<PathBuf>,
    /// The snapshot of the files before the trace [default: NAME.tree.parquet beside NAME.calls.parquet, if it exists]
    #[arg(long, value_name = "FILE")]
    pub tree_from: Option<PathBuf>,
    /// Working directory of the traced program, if the trace does not have it
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Concurrent instances of the replay, each in its own directory instance-K below the root, or where --map says with
    /// {instance}
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<u32>(1..=1000))]
    #[arg(allow_hyphen_values = true)]
    pub instances: u32,
    /// Include device nodes, sockets and FIFOs
    #[arg(long)]
    pub special_files: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// List all paths
    #[arg(long, short)]
    pub verbose: bool,
}

/// What a trace needs below the root.
pub struct Needed {
    pub prescan: Prescan,
    pub plan: Plan,
    pub metadata: Metadata,
    /// The file of the snapshot.
    pub snapshot: Option<PathBuf>,
    /// The directories that need it: the root, or one for each instance.
    pub roots: Vec<RootPath>,
}

impl NeedArgs {
    /// Reads the trace once. Nothing is done below the root.
    pub fn needed(&self) -> Result<Needed> {
        let map = self.map.as_deref().map(PathMap::read).transpose()?.unwrap_or_default();
        let ignore = self.ignore.as_deref().map(Ignore::read).transpose()?.unwrap_or_default();
        let snapshot = self.snapshot();
        let tree = snapshot.as_deref().map(Tree::load).transpose()?.map(Arc::new);
        let mut reader = iosonar_files::open(&self.trace, &OpenOptions { cwd: self.cwd.clone() })?;
        let options = Options {
            tree: tree.clone(),
            map: map.clone(),
            ignore: ignore.clone(),
            special_files: self.special_files,
            cwd: self.cwd.as_ref().map(|cwd| Name::from(cwd.as_os_str().as_bytes())),
            with_needs: true,
        };
        let mut rows = Rows::of("reading the trace", "call");
        let prescan = prescan(&mut *reader, options, |progress| rows.row(|| progress))?;
        rows.finish();
        let metadata = reader.metadata().clone();
        let needs = prescan.state.needs().expect("asked for");
        let plan_of = |instance| Plan::new(needs, tree.as_deref(), &map.for_instance(instance), &ignore);
        let mut plan = plan_of(0);
        if map.has_instances() {
            (1..self.instances).for_each(|instance| plan.add(plan_of(instance)));
        }
        let roots = if self.instances == 1 || map.has_instances() {
            vec![RootPath::of(&self.root)]
        } else {
            RootPath::of_instances(&self.root, self.instances)
        };
        Ok(Needed { prescan, plan, metadata, snapshot, roots })
    }

    pub fn root_text(&self, needed: &Needed) -> String {
        let root = self.root.display();
        match needed.roots.len() {
            1 => root.to_string(),
            several => format!("{root}/instance-0 … instance-{}", several - 1),
        }
    }

    fn snapshot(&self) -> Option<PathBuf> {
        self.tree_from.clone().or_else(|| Some(beside(&self.trace)).filter(|path: &PathBuf| path.is_file()))
    }
}

impl Needed {
    /// What limits the result.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.metadata.warnings.clone();
        if !self.metadata.complete {
            warnings.push("the trace was cut short".into());
        }
        warnings.extend(self.prescan.counts.warnings());
        warnings.extend(self.prescan.counts.mapping_warning());
        warnings.extend(unknown_links(&self.plan.unknown_links));
        warnings
    }
}

/// How many links a warning names.
const LISTED: usize = 5;

fn unknown_links(links: &[Box<[u8]>]) -> Option<String> {
    let first: Vec<_> = links.iter().take(LISTED).map(|path| text(path)).collect();
    let more = if links.len() > LISTED { ", …" } else { "" };
    (!links.is_empty()).then(|| {
        format!(
            "the targets of {} are not in the trace: {}{more}. Record with a snapshot (files record) or with strace -s 4096, or make the links below the root and prepare again",
            human::counted(links.len() as u64, "symbolic link"),
            first.join(", ")
        )
    })
}

/// A path for JSON and tables.
pub fn text(path: &[u8]) -> String {
    iosonar_trace::path_text(Path::new(std::ffi::OsStr::from_bytes(path)))
}
