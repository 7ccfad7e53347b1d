//! Writes rows to the file in a thread of its own, so that encoding never competes with draining the ring. The thread
//! writes checkpoints from time to time, so that little is lost if the process is killed.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use iosonar_trace::{Metadata, Request, Writer};

use crate::error::{Error, Result};

/// Batches of rows that the file may lag behind.
const BATCHES: usize = 256;

/// A message to the thread.
enum Message {
    Rows(Vec<Request>),
    /// Make the rows written so far survive the death of this process.
    Checkpoint(Box<Metadata>),
    Finish(Box<Metadata>),
}

/// The thread that writes the recording.
pub(crate) struct WriterThread {
    messages: SyncSender<Message>,
    thread: JoinHandle<Result<Vec<String>>>,
}

impl WriterThread {
    /// Starts the thread.
    pub fn start(writer: Box<dyn Writer<Request>>) -> Self {
        let (sender, receiver) = sync_channel(BATCHES);
        let thread = Builder::new().name("writer".into());
        let thread = thread.spawn(move || write(writer, &receiver)).expect("a thread can be created");
        Self { messages: sender, thread }
    }

    /// Appends rows. Blocks if the file lags behind; the ring then buffers events.
    pub fn write(&self, rows: Vec<Request>) {
        self.send(Message::Rows(rows));
    }

    /// Makes the rows so far survive the death of this process.
    pub fn checkpoint(&self, footer: Metadata) {
        self.send(Message::Checkpoint(footer.into()));
    }

    fn send(&self, message: Message) {
        // Fails if the thread has ended; `finish` then returns why.
        let _ = self.messages.send(message);
    }

    /// Whether the thread ended early because the file cannot be written; [`WriterThread::finish`] returns why.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Finishes the file. Returns what it could not represent, one sentence each.
    pub fn finish(self, metadata: Metadata) -> Result<Vec<String>> {
        self.send(Message::Finish(metadata.into()));
        self.thread.join().map_err(|_| Error::WriterGone)?
    }
}

fn write(mut writer: Box<dyn Writer<Request>>, messages: &Receiver<Message>) -> Result<Vec<String>> {
    for message in messages {
        match message {
            Message::Rows(rows) => {
                for row in &rows {
                    writer.write(row)?;
                }
            }
            Message::Checkpoint(footer) => writer.checkpoint(&footer)?,
            Message::Finish(metadata) => return Ok(writer.finish(&metadata)?.warnings),
        }
    }
    Err(Error::WriterGone)
}
