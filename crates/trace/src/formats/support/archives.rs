//! Detects archives, compressions and encodings that iosonar cannot read, before a format mistakes them for a trace. A tar
//! archive of text could be read as text, with a bad line at the beginning of each file. The journal of a replay is not a
//! result yet.

/// An error message for a file that begins like this, with the command that extracts the trace; `None` for other files.
pub fn unreadable(head: &[u8]) -> Option<String> {
    const TAR_MAGIC: usize = 257;
    let piped = |program, command| {
        format!("compressed with {program}, which iosonar cannot read; use a pipe: {command} FILE | iosonar … -")
    };
    match head {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(piped("xz", "xz -dc")),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, ..] => Some(piped("bzip2", "bzip2 -dc")),
        [b'P', b'K', 3, 4, ..] => Some(piped("zip", "unzip -p")),
        // The last byte is the layout, which `recover` checks. In a text it would be at least a tab.
        [b'i', b'o', b's', b'o', b'n', b'a', b'r', 1..=8, ..] => Some(
            "the journal of a replay that was killed or is still running: `iosonar recover FILE` makes a result of its rows"
                .to_owned(),
        ),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(piped("lz4", "lz4 -dc")),
        [b'L', b'Z', b'I', b'P', 1, ..] => Some(piped("lzip", "lzip -dc")),
        [0x1f, 0x9d, ..] => Some(piped("compress", "uncompress -c")),
        [0x89, b'L', b'Z', b'O', ..] => Some(piped("lzop", "lzop -dc")),
        [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Some(piped("RAR", "unrar p -inul")),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(piped("7-Zip", "7z x -so")),
        [0xff, 0xfe, b'\t' | b'\n' | b'\r' | b' '..=b'~', 0, ..]
        | [0xfe, 0xff, 0, b'\t' | b'\n' | b'\r' | b' '..=b'~', ..] => Some(
            "UTF-16 text, as Windows programs write, which iosonar cannot read; use a pipe: \
             iconv -f utf-16 -t utf-8 FILE | iosonar … -"
                .to_owned(),
        ),
        // Zeros pad the name of an archive's first file; text has none.
        _ if head.get(TAR_MAGIC..).is_some_and(|rest| rest.starts_with(b"ustar")) && head[..TAR_MAGIC].contains(&0) => Some(
            "a tar archive, which may hold several traces; extract one in a pipe: tar -xOf FILE MEMBER | iosonar … - \
             (tar -tf FILE lists them)"
                .to_owned(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_command_that_extracts_the_trace() {
        let tar = [&b"hm_0.csv"[..], &[0; 249], b"ustar\0", &[b'0'; 300]].concat();
        for (head, command) in [
            (&b"\xfd7zXZ\0\0\x04"[..], "xz -dc FILE"),
            (b"BZh91AY&SY", "bzip2 -dc FILE"),
            (b"PK\x03\x04\x14\0", "unzip -p FILE"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "7z x -so FILE"),
            (b"\x04\x22\x4d\x18\x64\x40", "lz4 -dc FILE"),
            (b"LZIP\x01\x0c", "lzip -dc FILE"),
            (b"\x1f\x9d\x90", "uncompress -c FILE"),
            (b"Rar!\x1a\x07\x01\0", "unrar p -inul FILE"),
            (b"\xff\xfeT\0i\0", "iconv -f utf-16"),
            (b"\xff\xfe\r\0\n\0", "iconv -f utf-16"),
            (b"\xfe\xff\0T\0i", "iconv -f utf-16"),
            (&tar, "tar -xOf FILE MEMBER"),
            (b"iosonar\x02\x10\0\0\0", "iosonar recover FILE"),
        ] {
            assert!(unreadable(head).unwrap().contains(command), "{command}");
        }
        let text = [&[b'0'; 257], &b"ustar; 8 ; R\n"[..]].concat();
        for head in [&b""[..], b"BZhang's load\n", b"iosonar\n", b"0 ; 1 ; 8 ; R\n", &tar[..200], &text] {
            assert_eq!(unreadable(head), None);
        }
    }
}
