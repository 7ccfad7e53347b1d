//! Which thread belongs to which process.

use crate::ids::IdMap;
use crate::{Call, CallKind};

const CLONE_THREAD: u64 = 0x1_0000;

/// The processes of threads. It sees the calls in the order of their start.
#[derive(Default)]
pub struct Processes {
    by_thread: IdMap<u32, u32>,
    latest: (u32, u32),
}

impl Processes {
    /// The process of the thread that makes a call: 0 unless its creation, or its `execve`, is in the trace.
    pub fn of(&mut self, call: &Call) -> u32 {
        let thread = call.thread;
        let mut process =
            if self.latest.0 == thread { self.latest.1 } else { self.by_thread.get(&thread).copied().unwrap_or(0) };
        match call.kind {
            CallKind::Execve | CallKind::Execveat if process == 0 && call.succeeded() => {
                // The program runs in the first thread of its process, whose number is that of the process.
                process = thread;
                self.by_thread.insert(thread, thread);
            }
            CallKind::Clone | CallKind::Clone3 | CallKind::Fork | CallKind::Vfork => {
                if let Some(child) = call.result.and_then(|child| u32::try_from(child).ok()).filter(|&child| child > 0)
                {
                    let of_child = if call.flags & CLONE_THREAD != 0 { process } else { child };
                    self.by_thread.insert(child, of_child);
                }
            }
            _ => {}
        }
        self.latest = (thread, process);
        process
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Nanos;

    use super::*;

    #[test]
    fn threads_belong_to_the_process_of_their_creator() {
        let mut processes = Processes::default();
        let mut of = |thread, kind, flags, result| {
            processes.of(&Call { flags, result: Some(result), ..Call::new(Nanos(0), thread, kind) })
        };
        assert_eq!(of(7, CallKind::Read, 0, 0), 0);
        assert_eq!(of(5, CallKind::Execve, 0, 0), 5);
        assert_eq!(of(5, CallKind::Clone3, CLONE_THREAD, 6), 5);
        assert_eq!(of(6, CallKind::Clone, 17, 8), 5);
        assert_eq!(of(8, CallKind::Read, 0, 0), 8);
        assert_eq!(of(6, CallKind::Read, 0, 0), 5);
        assert_eq!(of(7, CallKind::Clone, CLONE_THREAD, 9), 0);
        assert_eq!(of(9, CallKind::Clone, CLONE_THREAD, -1), 0);
    }
}
