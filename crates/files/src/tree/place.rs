//! Where roots are, and how they are opened: only ordinary directories, and those of instances never through a link.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat, open};

use super::confined::Confined;
use super::mounts::{is_in_kernel, unfit};
use super::outcome::Error;

/// The path of a root: a directory that the user names, or that of an instance in it.
#[derive(Clone, Debug)]
pub struct RootPath {
    dir: PathBuf,
    instance: Option<u32>,
}

impl RootPath {
    /// A directory that the user names.
    pub fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), instance: None }
    }

    /// The roots of several instances: `instance-0` and so on in a directory.
    pub fn of_instances(dir: &Path, instances: u32) -> Vec<Self> {
        (0..instances).map(|instance| Self { dir: dir.to_owned(), instance: Some(instance) }).collect()
    }

    /// The path for messages.
    pub fn path(&self) -> PathBuf {
        match self.name() {
            Some(name) => self.dir.join(name),
            None => self.dir.clone(),
        }
    }

    fn name(&self) -> Option<String> {
        self.instance.map(|instance| format!("instance-{instance}"))
    }

    /// Opens it.
    ///
    /// # Errors
    /// If it does not exist, or must not be a root.
    pub fn open(&self) -> Result<Confined, Error> {
        let cannot = |source| Error::System { what: format!("cannot open the root {}", self.path().display()), source };
        let mut root = Confined::open(&self.dir).map_err(cannot)?;
        if let Some(name) = self.name() {
            refuse(&root)?;
            root = root.open_below(&name).map_err(cannot)?;
        }
        refuse(&root)?;
        Ok(root)
    }

    /// Makes it if it does not exist, and opens it. Returns whether it is new.
    ///
    /// # Errors
    /// If it cannot be made, or must not be a root.
    pub fn make(&self) -> Result<(Confined, bool), Error> {
        let mut is_new = make_directory(&self.dir)?;
        if let Some(name) = self.name() {
            let above = Self::of(&self.dir).open()?;
            is_new = made(mkdirat(above.directory(), &name, Mode::from_raw_mode(0o777)), &self.path())?;
        }
        Ok((self.open()?, is_new))
    }
}

fn refuse(root: &Confined) -> Result<(), Error> {
    unfit(root.directory().as_fd(), root.path()).map_or(Ok(()), |problem| Err(Error::BadRoot(problem)))
}

/// Makes a directory, but none in a file system of the kernel, where that changes settings. Returns whether it is new.
///
/// # Errors
/// If it cannot be made.
pub fn make_directory(dir: &Path) -> Result<bool, Error> {
    let Some(name) = dir.file_name() else { return Ok(false) };
    let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = open(above, flags, Mode::empty()).map_err(|error| cannot_make(dir, error.into()))?;
    if is_in_kernel(above.as_fd()) {
        // What exists is refused when it is opened, with its kind.
        return Ok(false);
    }
    made(mkdirat(&above, name, Mode::from_raw_mode(0o777)), dir)
}

fn made(result: rustix::io::Result<()>, dir: &Path) -> Result<bool, Error> {
    match result {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        Err(error) => Err(cannot_make(dir, error.into())),
    }
}

fn cannot_make(dir: &Path, source: io::Error) -> Error {
    Error::System { what: format!("cannot make the root {}", dir.display()), source }
}
