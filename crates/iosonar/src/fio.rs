//! How to replay an exported log with fio, which takes the names in a log as files in the current directory.

use std::path::Path;

use iosonar_trace::Metadata;
use iosonar_trace::output::split_compression;

/// The fio command that replays a log on one device.
pub fn advice(log: &Path, metadata: &Metadata) -> String {
    let names: Vec<&str> = metadata.devices.iter().map(|device| device.name.as_str()).collect();
    let (name, is_packed) = match log.to_str() {
        Some("-") => ("LOG".to_owned(), false),
        _ => {
            let (bare, _) = split_compression(log);
            // fio reads several logs, with colons between them.
            let name = bare.to_string_lossy().replace('\\', "\\\\").replace(':', "\\:");
            (name, bare != log)
        }
    };
    let unpack = if is_packed { "decompress it, as fio reads no compressed logs; then " } else { "" };
    let (what, it) = if names.len() == 1 { ("a file", "it") } else { ("files", "all of its devices together") };
    let shown = names.iter().copied().filter(|name| !name.is_empty()).take(4).collect::<Vec<_>>().join(", ");
    let called = if shown.is_empty() { String::new() } else { format!(" called {shown}") };
    format!(
        "{unpack}to replay {it} on DEV, which overwrites DEV:\n  fio --name=replay {} --replay_redirect=DEV --direct=1 \
         --ioengine=io_uring --iodepth=512\nWithout --replay_redirect, fio uses {what}{called} in the current directory",
        quoted(&format!("--read_iolog={name}"))
    )
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./,+@%".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::{Device, Kind};

    use super::*;

    fn text(log: &str, names: &[&str]) -> String {
        let devices = names.iter().map(|name| Device { name: (*name).to_owned(), sectors: None }).collect();
        advice(Path::new(log), &Metadata { devices, ..Metadata::new(Kind::Load, "test") })
    }

    #[test]
    fn the_command_names_log_and_device() {
        let one = text("out/a.iolog", &["loop0"]);
        let command = "  fio --name=replay --read_iolog=out/a.iolog --replay_redirect=DEV --direct=1 ";
        assert!(one.contains(command) && one.contains("a file called loop0 in the current directory"), "{one}");
        let several = text("a:b's.iolog.gz", &["sda", "sdb"]);
        assert!(several.contains(r"'--read_iolog=a\:b'\''s.iolog'"), "{several}");
        assert!(several.starts_with("decompress it") && several.contains("files called sda, sdb"), "{several}");
        assert!(text("-", &[""]).contains("--read_iolog=LOG "));
    }
}
