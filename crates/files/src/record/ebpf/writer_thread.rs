//! Writes calls to the table in a thread of its own, so that encoding never competes with draining the ring.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crate::model::call::Call;
use crate::model::metadata::Metadata;
use crate::model::stream::CallWriter;
use crate::record::checkpoints::Checkpoints;
use crate::record::error::{Error, Result};

/// Batches of calls that the file may lag behind.
const BATCHES: usize = 64;

/// A message to the thread.
enum Message {
    Calls(Vec<Call>),
    Finish(Box<Metadata>),
}

/// The thread that writes the recording.
pub struct WriterThread {
    messages: SyncSender<Message>,
    thread: JoinHandle<Result<()>>,
}

impl WriterThread {
    /// Starts the thread. `known` is the metadata of the recording if it ends early.
    pub fn start(mut writer: Box<dyn CallWriter>, known: &Metadata) -> Self {
        let checkpoints = Checkpoints::start(writer.as_mut(), known);
        let (sender, receiver) = sync_channel(BATCHES);
        Self { messages: sender, thread: std::thread::spawn(move || write(writer, checkpoints, &receiver)) }
    }

    /// Appends calls. Blocks if the file lags behind; the ring then buffers events.
    pub fn write(&self, calls: Vec<Call>) {
        // Fails if the thread has ended; `finish` then returns why.
        let _ = self.messages.send(Message::Calls(calls));
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

fn write(mut writer: Box<dyn CallWriter>, mut checkpoints: Checkpoints, messages: &Receiver<Message>) -> Result<()> {
    for message in messages {
        match message {
            Message::Calls(calls) => {
                for call in &calls {
                    checkpoints.write(writer.as_mut(), call)?;
                }
            }
            Message::Finish(metadata) => return Ok(writer.finish(&metadata)?),
        }
    }
    Err(Error::WriterGone)
}
