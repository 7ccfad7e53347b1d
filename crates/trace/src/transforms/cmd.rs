//! Whatever else a shell can do.

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
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::counted::{Counted, Source};
use super::{Needs, Rows, Transform, kept};

pub static TRANSFORM: Transform = Transform {
    form: Definition {
        name: "cmd",
        about: "Sends the load through a shell command, as classic text: `seconds ; sector ; sectors ; R or W ; …`",
        details: "The command reads the text and writes such text again, in the order of time. Only reads and writes go\n\
                  through, those of all devices as the first one's, without flags, latencies and processes: that is all\n\
                  the text has room for. The date is left out, as the command may move times. Put `remap` or `adjacent` in front to choose or keep devices apart. The load ends\n\
                  with an error if the command does. `iosonar replay --edit` runs it twice, as it counts the load before\n\
                  the run, and once more for each further iteration of `--loop`.",
        params: &[ParamSpec {
            name: "command",
            takes: ParamType::Text,
            unset: ParamDefault::Default("cat"),
            help: "what sh -c is given",
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
    leave_out(&mut metadata);
    let feeder = thread::spawn(move || feed_all(rows, File::from(OwnedFd::from(feed))));
    let stdout = child.stdout.take().ok_or_else(|| wrap(io::ErrorKind::BrokenPipe.into()))?;
    let mut source = Through { name, rows: None, child: Some(child), feeder: Some(feeder), metadata };
    let input = Input::from_reader(Path::new(&source.name), Box::new(stdout), None)?;
    source.rows = Some(crate::into_load((classic::FORMAT.open)(input, &crate::Options::default())?)?);
    // The first has the requests of all devices, and these are where the command says.
    Ok(Counted::on_devices_of_any_size(source))
}

/// What the text has no room for. Devices that appeared late went through as the first, like all others; and the date may be that
/// of a time that is another one now.
fn leave_out(metadata: &mut Metadata) {
    metadata.devices.truncate(1);
    metadata.epoch_unix_ns = None;
}

/// Gives the command the whole load; returns what is known of the load then.
fn feed_all(mut rows: Rows, feed: File) -> Result<Metadata> {
    let mut writer = classic::create_load(Output::of_file(Path::new("(input of the command)"), feed), rows.metadata())?;
    while let Some(row) = rows.next()? {
        writer.write(&row)?;
    }
    let mut metadata = rows.metadata().clone();
    writer.finish(&metadata)?.said.into_iter().for_each(|loss| metadata.notice(format!("cmd: {loss}")));
    Ok(metadata)
}

struct Through {
    name: String,
    /// What the command says; none before it was started.
    rows: Option<Rows>,
    child: Option<Child>,
    feeder: Option<JoinHandle<Result<Metadata>>>,
    metadata: Metadata,
}

impl Source for Through {
    fn next(&mut self) -> Result<Option<Request>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        if let Some(mut request) = rows.next()? {
            request.latency = None;
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

impl Through {
    /// The command has closed its output: asks how it went.
    fn end(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            let status = child.wait().map_err(|e| Error::io(&self.name, e))?;
            if !status.success() {
                return Err(Error::format(&self.name, format!("the command failed: {status}")));
            }
        }
        if let Some(feeder) = self.feeder.take() {
            match feeder.join().unwrap_or_else(|_| Err(Error::format(&self.name, "its input could not be written"))) {
                Ok(metadata) => {
                    self.metadata = metadata;
                    leave_out(&mut self.metadata);
                }
                // A command may have seen enough, as `head` does.
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {}
                Err(error) => return Err(error),
            }
            // The text has no completions, and so none is missing.
            self.metadata.counts.unmatched = 0;
            if let Some(rows) = &self.rows {
                let said = rows.metadata();
                self.metadata.counts.bad_lines += said.counts.bad_lines;
                self.metadata.counts.time_jumps += said.counts.time_jumps;
                self.metadata.complete &= said.complete;
                said.notices.iter().for_each(|notice| self.metadata.notice(format!("cmd: {notice}")));
            }
        }
        Ok(())
    }
}

impl Drop for Through {
    /// Whoever stopped reading early wants the command gone; the thread that feeds it ends with it.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            _ = child.kill();
            _ = child.wait();
        }
    }
}
