//! Joins the paths of a call to the call that ends after them.

use std::collections::HashMap;

use iosonar_trace::Nanos;

use super::event::{FAULT, MappedFile, Path, RawCall, URING};
use super::faults::{self, MappedFiles};
use super::layout::set_arguments;
use super::numbers::{NUMBERS, kinds};
use super::uring;
use crate::model::call::{Call, Name};
use crate::model::kind::CallKind;

/// The most requests of io_uring whose paths are kept. Those of requests whose end was lost stay behind.
const REQUESTS: usize = 1 << 16;

/// Paths that arrived, with the start of their call.
#[derive(Default)]
struct Paths {
    begin_ns: u64,
    first: Option<Name>,
    second: Option<Name>,
}

/// Makes calls of events.
pub struct Join {
    kinds: [Option<CallKind>; NUMBERS],
    zero_ns: u64,
    knows_waiting: bool,
    /// The paths of the last call of each thread.
    of_threads: HashMap<u32, Paths>,
    /// The paths of requests of io_uring in flight, by thread and begin.
    of_requests: HashMap<(u32, u64), Paths>,
    mapped: MappedFiles,
}

impl Join {
    /// Calls that begin before `zero_ns` are left out; the others count their time from it.
    pub fn new(zero_ns: u64) -> Self {
        Self {
            kinds: kinds(),
            zero_ns,
            knows_waiting: false,
            of_threads: HashMap::new(),
            of_requests: HashMap::new(),
            mapped: MappedFiles::default(),
        }
    }

    /// Gives calls the time that their thread was blocked before.
    pub fn with_waiting(self, knows_waiting: bool) -> Self {
        Self { knows_waiting, ..self }
    }

    /// Leaves out what begins before `zero_ns`, and counts times from it.
    pub fn begin_at(&mut self, zero_ns: u64) {
        self.zero_ns = zero_ns;
    }

    /// Keeps a path for its call.
    pub fn path(&mut self, path: &Path) {
        let paths = if path.is_of_request {
            if self.of_requests.len() >= REQUESTS {
                self.of_requests.clear();
            }
            self.of_requests.entry((path.thread, path.begin_ns)).or_default()
        } else {
            self.of_threads.entry(path.thread).or_default()
        };
        if paths.begin_ns != path.begin_ns {
            *paths = Paths { begin_ns: path.begin_ns, ..Paths::default() };
        }
        *if path.is_second { &mut paths.second } else { &mut paths.first } = Some(path.text.into());
    }

    /// Keeps the path of a mapped file for page faults in it.
    pub fn file(&mut self, file: &MappedFile) {
        self.mapped.insert(file);
    }

    /// The call with its arguments and result; `None` if it is none to be recorded.
    pub fn without_paths(&self, raw: &RawCall) -> Option<Call> {
        let mut call = if raw.number & URING != 0 {
            uring::call(raw, raw.number & !URING)?
        } else if raw.number == FAULT {
            faults::call(raw)
        } else {
            Call::new(Nanos::ZERO, raw.thread, self.kinds.get(usize::from(raw.number)).copied().flatten()?)
        };
        let since_zero = raw.begin_ns.checked_sub(self.zero_ns)?;
        call.begin = Nanos(i64::try_from(since_zero).ok()?);
        call.process = raw.process;
        set_result(&mut call, raw);
        if !call.is_uring {
            call.waited = self.knows_waiting.then(|| Nanos(i64::try_from(raw.waited_ns).unwrap_or(i64::MAX)));
            if raw.number != FAULT {
                set_arguments(&mut call, &raw.arguments, raw.extra);
            }
        }
        Some(call)
    }

    /// The call with its paths; `None` if it is none to be recorded.
    pub fn call(&mut self, raw: &RawCall) -> Option<Call> {
        let mut call = self.without_paths(raw)?;
        if raw.number == FAULT {
            call.path = self.mapped.path(raw.arguments[3]);
        } else if call.is_uring {
            if let Some(paths) = self.of_requests.remove(&(raw.thread, raw.begin_ns)) {
                (call.path, call.path2) = (paths.first, paths.second);
            }
        } else {
            if let Some(paths) = self.of_threads.get_mut(&raw.thread).filter(|paths| paths.begin_ns == raw.begin_ns) {
                (call.path, call.path2) = (paths.first.take(), paths.second.take());
            }
            if ends_thread(call.kind) {
                self.of_threads.remove(&raw.thread);
            }
        }
        Some(call)
    }
}

fn ends_thread(kind: CallKind) -> bool {
    matches!(kind, CallKind::Exit | CallKind::ExitGroup)
}

/// A signal interrupted the call (`-ERESTARTSYS`, …): the program sees another result, or the kernel makes the call again.
const RESTARTED: [i64; 4] = [-512, -513, -514, -516];

/// Sets what the call returned. As for libc, the last 4095 values are errors.
fn set_result(call: &mut Call, raw: &RawCall) {
    let Some(end_ns) = raw.end_ns else {
        (call.duration, call.result) = (None, None);
        return;
    };
    call.duration = Some(Nanos(end_ns.saturating_sub(raw.begin_ns).cast_signed()));
    if RESTARTED.contains(&raw.result) {
        call.result = None;
    } else if (-4095..0).contains(&raw.result) {
        (call.result, call.errno) = (Some(-1), (-raw.result) as i32);
    } else if raw.child != 0 && raw.result > 0 {
        // In a PID namespace the program sees another number.
        call.result = Some(raw.child.into());
    } else {
        call.result = Some(raw.result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAT: u16 = libc::SYS_openat as u16;

    fn path(begin_ns: u64, is_second: bool, text: &[u8]) -> Path<'_> {
        Path { is_of_request: false, is_second, thread: 1, begin_ns, text }
    }

    fn raw(number: u16, begin_ns: u64, result: i64) -> RawCall {
        RawCall { number, thread: 1, process: 1, begin_ns, end_ns: Some(begin_ns + 5), result, ..RawCall::default() }
    }

    #[test]
    fn a_call_has_the_paths_that_came_before_it() {
        let mut join = Join::new(100);
        join.path(&path(110, false, b"/a"));
        let call = join.call(&raw(OPENAT, 110, 3)).unwrap();
        assert_eq!((call.begin, call.duration), (Nanos(10), Some(Nanos(5))));
        assert_eq!((call.path, call.result, call.errno), (Some("/a".into()), Some(3), 0));
        assert_eq!(call.waited, None);
        // The path of an earlier call, whose end was lost.
        join.path(&path(120, false, b"/b"));
        let call = join.call(&raw(OPENAT, 130, -i64::from(libc::ENOENT))).unwrap();
        assert_eq!((call.path, call.result, call.errno), (None, Some(-1), libc::ENOENT));
    }

    #[test]
    fn a_call_has_the_time_that_its_thread_was_blocked_before() {
        let mut join = Join::new(0).with_waiting(true);
        let call = join.call(&RawCall { waited_ns: 7, ..raw(OPENAT, 10, 3) }).unwrap();
        assert_eq!(call.waited, Some(Nanos(7)));
        let request = join.call(&RawCall { waited_ns: 7, ..raw(URING | 18, 10, 3) }).unwrap();
        assert_eq!(request.waited, None);
    }

    #[test]
    fn a_call_that_does_not_return_has_no_result() {
        let mut join = Join::new(0);
        let call = join.call(&RawCall { end_ns: None, ..raw(libc::SYS_exit_group as u16, 7, 0) }).unwrap();
        assert_eq!((call.kind, call.duration, call.result), (CallKind::ExitGroup, None, None));
    }

    #[test]
    fn an_interrupted_call_has_a_duration_but_no_result() {
        let call = Join::new(0).call(&raw(libc::SYS_wait4 as u16, 7, -512)).unwrap();
        assert_eq!((call.duration, call.result, call.errno), (Some(Nanos(5)), None, 0));
    }

    #[test]
    fn what_began_before_zero_is_left_out() {
        assert_eq!(Join::new(100).call(&raw(OPENAT, 99, 3)), None);
    }

    #[test]
    fn requests_in_flight_keep_their_own_paths() {
        let mut join = Join::new(0);
        for (begin_ns, text) in [(10, b"/a"), (20, b"/b")] {
            join.path(&Path { is_of_request: true, is_second: false, thread: 1, begin_ns, text });
        }
        let mut ended = |begin_ns| join.call(&raw(URING | 18, begin_ns, 5)).unwrap().path.unwrap().to_string();
        assert_eq!((ended(20), ended(10)), ("/b".into(), "/a".into()));
    }

    #[test]
    fn the_new_thread_has_the_kernels_number() {
        let forked = RawCall { child: 77, ..raw(libc::SYS_clone as u16, 10, 2) };
        assert_eq!(Join::new(0).call(&forked).unwrap().result, Some(77));
    }
}
