//! Reads NFS requests and replies as the text of nfsdump, the format of the traces of Harvard at SNIA's IOTTA repository.
//!
//! ```text
//!  line ─▶ pair of request and reply ─▶ calls that do the same to files ─▶ order ─▶ Call
//! ```
//!
//! NFS names files by handles. Paths come from the replies that give a handle to a name; a handle whose name no reply shows is
//! a name of its own at the root. Sources: `format.txt` of nfsdump (D. Ellard, 2003), RFC 1094 and RFC 1813.

mod handles;
mod line;
mod reader;
mod requests;

pub use reader::Reader;

/// Lines that are looked at.
const LINES: usize = 64;

/// Whether a file begins as the text of nfsdump does.
pub fn recognise(head: &[u8]) -> bool {
    let end = memchr::memrchr(b'\n', head).map_or(head.len(), |end| end + 1);
    let lines = head[..end].split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES);
    let (mut understood, mut all) = (0, 0);
    for line in lines {
        all += 1;
        understood += usize::from(line::parse(line).is_ok());
    }
    understood > 0 && understood * 2 > all
}

#[cfg(test)]
mod tests;
