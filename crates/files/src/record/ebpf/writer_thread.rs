//! Writes calls to the table in a thread of its own, so that encoding never competes with draining the ring.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::model::call::Call;
use crate::model::metadata::Metadata;
use crate::model::stream::CallWriter;
use crate::record::error::{Error, Result};

/// Batches of calls that the file may lag behind.
const BATCHES: usize = 64;

/// A message to the thread.
enum Message {
    Calls(Vec<Call>),
    /// Make the calls written so far survive the end of this process.
    Checkpoint(Box<Metadata>),
    Fail(io::Error),
    Finish(Box<Metadata>),
}

/// The thread that writes the recording.
pub struct WriterThread {
    messages: SyncSender<Message>,
    thread: JoinHandle<Result<()>>,
}

impl WriterThread {
    /// Starts the thread.
    pub fn start(writer: Box<dyn CallWriter>) -> Self {
        let (sender, receiver) = sync_channel(BATCHES);
        Self { messages: sender, thread: std::thread::spawn(move || write(writer, &receiver)) }
    }

    /// Appends calls. Blocks if the file lags behind; the ring then buffers events.
    pub fn write(&self, calls: Vec<Call>) {
        // Fails if the thread has ended; `finish` then returns why.
        let _ = self.messages.send(Message::Calls(calls));
    }

    /// Ends the thread: a file that belongs to the table cannot be written.
    pub fn fail(&self, error: io::Error) {
        let _ = self.messages.send(Message::Fail(error));
    }

    /// Makes the calls so far survive the end of this process.
    pub fn checkpoint(&self, so_far: Metadata) {
        let _ = self.messages.send(Message::Checkpoint(so_far.into()));
    }

    /// Whether the thread ended early because the file cannot be written; [`WriterThread::finish`] returns why.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Finishes the file.
    pub fn finish(self, metadata: Metadata) -> Result<()> {
        let _ = self.messages.send(Message::Finish(metadata.into()));
        self.thread.join().map_err(|_| Error::WriterGone)?
    }
}

fn write(mut writer: Box<dyn CallWriter>, messages: &Receiver<Message>) -> Result<()> {
    for message in messages {
        match message {
            Message::Calls(calls) => {
                for call in &calls {
                    writer.write(call)?;
                }
            }
            Message::Checkpoint(so_far) => writer.checkpoint(&so_far)?,
            Message::Fail(error) => return Err(writer.error(error).into()),
            Message::Finish(metadata) => return Ok(writer.finish(&metadata)?),
        }
    }
    Err(Error::WriterGone)
}
