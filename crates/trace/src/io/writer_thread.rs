//! Writes rows to a file in a thread of its own, so that encoding never competes with what makes the rows.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Result};
use crate::io::stream::{ConversionLoss, Writer};
use crate::model::row::Row;

/// A message to the thread.
enum Message<R: Row> {
    Rows(Vec<R>),
    /// Make the rows written so far survive the end of this process.
    Checkpoint(Box<R::Metadata>),
    Fail(io::Error),
    Finish(Box<R::Metadata>),
}

/// The thread that writes a recording.
pub struct WriterThread<R: Row> {
    messages: SyncSender<Message<R>>,
    thread: JoinHandle<Result<ConversionLoss>>,
}

impl<R: Row> WriterThread<R> {
    /// Starts the thread. The file may lag behind by so many batches of rows.
    pub fn start(writer: Box<dyn Writer<R>>, batches: usize) -> Self {
        let (sender, receiver) = sync_channel(batches);
        let thread = Builder::new().name("writer".into());
        let thread = thread.spawn(move || write(writer, &receiver)).expect("a thread can be created");
        Self { messages: sender, thread }
    }

    /// Appends rows. Blocks if the file lags behind.
    pub fn write(&self, rows: Vec<R>) {
        self.send(Message::Rows(rows));
    }

    /// Makes the rows so far survive the end of this process.
    pub fn checkpoint(&self, so_far: R::Metadata) {
        self.send(Message::Checkpoint(so_far.into()));
    }

    /// Ends the thread: a file that belongs to this one cannot be written.
    pub fn fail(&self, error: io::Error) {
        self.send(Message::Fail(error));
    }

    fn send(&self, message: Message<R>) {
        // Fails if the thread has ended; `finish` then returns why.
        let _ = self.messages.send(message);
    }

    /// Whether the thread ended early because the file cannot be written; [`WriterThread::finish`] returns why.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(self, metadata: R::Metadata) -> Result<ConversionLoss> {
        self.send(Message::Finish(metadata.into()));
        self.thread.join().unwrap_or(Err(Error::WriterGone))
    }
}

fn write<R: Row>(mut writer: Box<dyn Writer<R>>, messages: &Receiver<Message<R>>) -> Result<ConversionLoss> {
    for message in messages {
        match message {
            Message::Rows(rows) => rows.into_iter().try_for_each(|row| writer.write_owned(row))?,
            Message::Checkpoint(so_far) => writer.checkpoint(&so_far)?,
            Message::Fail(error) => return Err(writer.error(error)),
            Message::Finish(metadata) => return writer.finish(&metadata),
        }
    }
    Err(Error::WriterGone)
}
