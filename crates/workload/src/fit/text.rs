//! The text of a fitted program.

use std::fmt::Write as _;

use iosonar_trace::human;

use super::model::{Candidate, Choices, FittedStream};

/// A chosen candidate's text; the kinds always choose one.
fn chosen(candidates: &[Candidate]) -> &str {
    candidates.iter().find(|candidate| candidate.is_chosen).map_or("", |candidate| &candidate.text)
}

/// A text of TOML. A `$` would be a parameter.
fn quoted(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() || matches!(c, '$' | '"' | '\\') { ' ' } else { c });
    format!("\"{}\"", plain.collect::<String>())
}

pub(super) fn program(choices: &Choices, devices: &[String], sizes: &[u64], streams: &[FittedStream]) -> String {
    let mut text = format!("name = {}\nabout = {}\n\n[devices]\n", quoted(&choices.name), quoted(&choices.of));
    for (device, size) in devices.iter().zip(sizes) {
        _ = writeln!(text, "{device} = \"{size}s\"{:8}# {}", "", human::block(size * 512));
    }
    for stream in streams {
        let device = &devices[stream.device];
        _ = write!(
            text,
            "\n[[stream]]{:22}# {}\nname = {}\narrivals = {}\nmix = {}\nsizes = {}\npositions = {}\nalign = \"{}s\"\ndevice = {}\n",
            "",
            human::counted(stream.requests as u64, "request"),
            quoted(&stream.name),
            quoted(chosen(&stream.arrivals)),
            quoted(&stream.mix),
            quoted(&stream.sizes),
            quoted(chosen(&stream.positions)),
            stream.align,
            quoted(device),
        );
        if stream.region != (0, sizes[stream.device]) {
            _ = writeln!(text, "region = \"{}s..{}s\"", stream.region.0, stream.region.1);
        }
    }
    text
}
