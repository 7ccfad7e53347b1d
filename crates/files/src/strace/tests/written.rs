//! Calls that are written as text are read again.

use proptest::prelude::*;

use super::super::write::{Writer, print};
use super::try_read;
use crate::{Call, CallKind, Metadata, Name};
use iosonar_trace::{Nanos, Writer as _};

fn name() -> impl Strategy<Value = Name> {
    prop::collection::vec(prop_oneof![1_u8..=255, prop::sample::select(&b"/a.\"\\<>-, ()[]{}=\n"[..])], 0..20)
        .prop_map(|bytes| Name::from(&bytes[..]))
}

fn number<T: std::fmt::Debug + Copy + 'static>(
    small: std::ops::Range<T>,
    large: &'static [T],
) -> impl Strategy<Value = T>
where
    std::ops::Range<T>: Strategy<Value = T>,
{
    prop_oneof![small, prop::sample::select(large)]
}

prop_compose! {
    /// A call with a value for every argument.
    fn full()(
        at in 0_usize..CallKind::ALL.len(),
        thread in 0_u32..4_000_000,
        times in (0_i64..10_i64.pow(15), prop::option::of(0_i64..10_i64.pow(12))),
        fds in (number(0_i32..100, &[crate::AT_FDCWD, i32::MAX]), 0_i32..2000),
        names in (prop::option::of(name()), prop::option::of(name()), prop::option::of(name())),
        offset in prop::option::of(number(-5_i64..100, &[i64::MAX, i64::MIN, 1 << 40])),
        length in prop::option::of(number(0_u64..100, &[1 << 40, i64::MAX as u64])),
        flags in number(0_u64..4096, &[0o2_001_102, 0o20_200_002, 0x8000_0000, u32::MAX as u64]),
        mode in prop::option::of(0_u32..0o7777),
        result in (number(-1_i64..100, &[0x7fa1_42a9_4000, i64::MAX]), number(1_i32..133, &[530])),
    ) -> Call {
        let (result, errno) = if result.0 == -1 { (-1, result.1) } else { (result.0, 0) };
        Call {
            begin: Nanos(times.0),
            // The number of EWOULDBLOCK and EAGAIN is the same; those without a name have their number.
            errno,
            result: times.1.map(|_| result),
            duration: times.1.map(Nanos),
            fd: Some(fds.0),
            fd2: Some(fds.1),
            fd_path: names.0,
            path: names.1,
            path2: names.2,
            offset,
            length,
            flags,
            mode,
            ..Call::new(Nanos(0), thread, CallKind::ALL[at])
        }
    }
}

/// Removes what the text of a call does not have.
fn recorded(mut call: Call) -> Call {
    use CallKind as K;
    let letters = call.kind.arguments();
    let has = |any: &[char]| letters.contains(any);
    if call.result.is_none() {
        call.errno = 0;
    }
    if !has(&['d', 'x', '[']) {
        call.fd = None;
    }
    if call.kind == K::Mmap {
        // Without a file, there is no row.
        call.fd = call.fd.map(|fd| fd.max(0));
    }
    let is_advice = has(&['a']) && matches!(call.flags, 0 | 2 | 4 | 8 | 10 | 1024 | 1026 | 1030 | 1031 | 1033);
    if !(has(&['e', 'E', '[']) || is_advice) {
        call.fd2 = None;
    }
    if !has(&['d']) {
        call.fd_path = None;
    }
    // The file of a device ends where its number begins.
    call.fd_path = call.fd_path.take().filter(|path| !path.as_bytes().contains(&b'<'));
    if !has(&['p', 'r', 'R', 'u']) {
        call.path = None;
    }
    if !has(&['q', 'N']) {
        call.path2 = None;
    }
    call.length = match call.length {
        length if has(&['v', 'V']) => length,
        length if has(&['l']) => Some(length.unwrap_or(0)),
        _ => None,
    };
    call.offset = match call.offset {
        offset if has(&['P']) || call.kind == K::Openat2 => offset,
        offset if has(&['o']) => Some(offset.unwrap_or(0)),
        _ => None,
    };
    if !has(&['f', 'O', 'A', 'F', 'C', 'c', 'H', 'i']) {
        call.flags = 0;
    }
    call.mode = match call.mode {
        mode if has(&['M', 'H']) => mode,
        mode if has(&['S']) && call.succeeded() => mode,
        mode if has(&['m', 'X']) => Some(mode.unwrap_or(0)),
        _ => None,
    };
    call
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(call in full()) {
        let mut expected = recorded(call.clone());
        let mut text = Vec::new();
        print(&mut text, &expected, 1_500_000_000_000_000_000);
        let shown = String::from_utf8_lossy(&text).into_owned();
        let (calls, about) = try_read(&text, None).unwrap();
        prop_assert_eq!(about.counts.bad_lines, 0, "{} {:?}", shown, about.warnings);
        // The first line is the trace's zero; processes are known from their creation only.
        prop_assert_eq!(about.epoch_unix_ns, Some(1_500_000_000_000_000_000 + expected.begin.0));
        expected.begin = Nanos(0);
        let process = calls[0].process;
        expected.process = process;
        prop_assert_eq!(&calls[0], &expected, "{}", shown);
    }
}

#[test]
fn a_file_of_calls_is_text_of_strace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.strace");
    let metadata = Metadata { epoch_unix_ns: Some(1_795_464_429_376_993_000), ..Metadata::default() };
    let mut writer = Box::new(Writer::create(&path, &metadata).unwrap());
    let open = Call {
        fd: Some(crate::AT_FDCWD),
        path: Some("/a \"b\"".into()),
        flags: 0o2_001_102,
        mode: Some(0o640),
        result: Some(3),
        ..Call::new(Nanos(0), 7, CallKind::Openat)
    };
    let failed = Call { fd: Some(3), errno: 9, result: Some(-1), ..Call::new(Nanos(5), 7, CallKind::Close) };
    writer.write(&open).unwrap();
    writer.write(&failed).unwrap();
    writer.finish(&metadata).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "7 1795464429.376993000 openat(AT_FDCWD, \"/a \\\"b\\\"\", O_RDWR|O_CREAT|O_TRUNC|O_CLOEXEC, 0640) = 3 <0.000000000>\n\
         7 1795464429.376993005 close(3) = -1 EBADF (error 9) <0.000000000>\n"
    );
    let (calls, about) = try_read(text.as_bytes(), None).unwrap();
    assert_eq!((calls, about.epoch_unix_ns), (vec![open, failed], metadata.epoch_unix_ns));
}
