//! Sends a load through a shell command.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::formats::classic;
use crate::io::input::Input;
use crate::io::output::Output;
use crate::io::pipe::{self, Pipe};
use crate::model::metadata::{Counts, Metadata};
use crate::model::request::Request;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, Source};
use super::{Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "cmd",
        about: "Sends the load through a shell command as classic text: `seconds ; sector ; sectors ; R or W ; …`",
        details: "The command writes the same kind of text, in the order of time. Only reads and writes pass, as\n\
                  requests of the first device, without flags and processes; put `remap` or `adjacent` before it to\n\
                  choose devices. Latencies are the last column. Drops the start date. `iosonar replay --edit` runs\n\
                  it twice, and once more for each further iteration of `--loop`.",
        params: &[ParamSpec {
            name: "command",
            takes: ParamType::Text,
            default: ParamDefault::Value("cat"),
            help: "command line for sh -c",
        }],
        example: "cmd command=\"grep -v ' W '\"",
    },
    needs: Needs::Rows,
    length: kept,
    build: |settings| {
        let command = settings.text("command").to_owned();
        Ok(Box::new(move |rows| apply(rows, &command)))
    },
};

fn apply(rows: Rows, command: &str) -> Result<Rows> {
    let name = format!("(output of `{command}`)");
    let wrap = |e: io::Error| Error::io(&name, e);
    let (inlet, feed) = io::pipe().map_err(wrap)?;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::from(inlet))
        .stdout(Stdio::piped())
        .spawn()
        .map_err(wrap)?;
    let mut metadata = rows.metadata().clone();
    drop_unsupported(&mut metadata);
    let writer = thread::spawn(move || feed_all(rows, File::from(OwnedFd::from(feed))));
    let stdout = child.stdout.take().ok_or_else(|| wrap(io::ErrorKind::BrokenPipe.into()))?;
    let mut source = PipedRows { name, rows: None, child: Some(child), writer: Some(writer), metadata };
    let input =
        Input::from_reader(Path::new(&source.name), Box::new(Pipe::of_file(OwnedFd::from(stdout).into())), None)?;
    source.rows = Some(crate::into_load((classic::FORMAT.open)(input, &crate::Options::default())?)?);
    // The first device gets the requests of all, at any position.
    Ok(Counted::on_devices_of_any_size(source))
}

/// Drops what the text cannot hold: all devices but the first, and the epoch, because the command may move times.
fn drop_unsupported(metadata: &mut Metadata) {
    metadata.devices.truncate(1);
    metadata.epoch_unix_ns = None;
}

/// Writes the whole load to the command. Returns the load's metadata at its end.
fn feed_all(mut rows: Rows, feed: File) -> Result<Metadata> {
    let mut writer = classic::create_load(Output::of_file(Path::new("(input of the command)"), feed), rows.metadata())?;
    while let Some(row) = rows.next()? {
        writer.write(&row)?;
    }
    let mut metadata = rows.metadata().clone();
    // Its losses stay here.
    let lossless = Metadata { counts: Counts::default(), complete: true, ..metadata.clone() };
    writer.finish(&lossless)?.warnings.into_iter().for_each(|loss| metadata.warning(format!("cmd: {loss}")));
    Ok(metadata)
}

struct PipedRows {
    name: String,
    /// The command's output; none before it was started.
    rows: Option<Rows>,
    child: Option<Child>,
    writer: Option<JoinHandle<Result<Metadata>>>,
    metadata: Metadata,
}

impl Source for PipedRows {
    fn next(&mut self) -> Result<Option<Request>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        if let Some(request) = rows.next()? {
            return Ok(Some(request));
        }
        self.end()?;
        Ok(None)
    }

    fn upstream(&self) -> &Metadata {
        &self.metadata
    }

    fn has_all_devices(&self) -> bool {
        true
    }
}

impl PipedRows {
    /// Checks exit status and losses after the command has closed its output.
    fn end(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            if pipe::is_ended() {
                // It may run on without an end.
                _ = child.kill();
            }
            let status = child.wait().map_err(|e| Error::io(&self.name, e))?;
            if !status.success() {
                return Err(Error::format(&self.name, format!("the command failed: {status}")));
            }
        }
        if let Some(writer) = self.writer.take() {
            match writer.join().unwrap_or_else(|_| Err(Error::format(&self.name, "cannot write its input"))) {
                Ok(metadata) => {
                    self.metadata = metadata;
                    drop_unsupported(&mut self.metadata);
                }
                // A command such as `head` stops reading early.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error),
            }
            // The text has no completions: none is missing.
            self.metadata.counts.unmatched = 0;
            if let Some(rows) = &self.rows {
                let output = rows.metadata();
                self.metadata.counts.add_losses(&output.counts);
                self.metadata.complete &= output.complete;
                output.warnings.iter().for_each(|warning| self.metadata.warning(format!("cmd: {warning}")));
            }
        }
        Ok(())
    }
}

impl Drop for PipedRows {
    /// Stops the command if the load was not read to its end; the feeder thread then ends with a broken pipe.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            _ = child.kill();
            _ = child.wait();
        }
    }
}
