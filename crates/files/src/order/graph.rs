//! Writes the graph of an order: each call with its predecessors, as text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use iosonar_trace::Nanos;
use iosonar_trace::text::escape::escape;
use serde_json::json;

use super::{Policy, Summary};
use crate::{Call, Resolved};

/// A text format of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GraphFormat {
    /// Aligned columns for people.
    #[default]
    Table,
    /// Columns with a tabulator between them, with their names in the first line.
    Tsv,
    /// One object.
    Json,
    /// The language of graphviz.
    Dot,
}

/// Colours of the threads in DOT, from graphviz's scheme `set312`.
const COLOURS: u32 = 12;

/// Writes calls with their predecessors, in turn.
pub struct GraphWriter<W: Write> {
    output: W,
    format: GraphFormat,
    rows: u64,
    /// The colour of each thread so far. A trace may have a million threads.
    colours: BTreeMap<u32, u32>,
}

impl<W: Write> GraphWriter<W> {
    /// Begins the text.
    pub fn new(mut output: W, format: GraphFormat, policy: Policy) -> io::Result<Self> {
        match format {
            GraphFormat::Table => {
                writeln!(
                    output,
                    "{:>9}  {:>14}  {:>8}  {:<15}  {:<48}  predecessors",
                    "number", "begin", "thread", "call", "path"
                )?;
            }
            GraphFormat::Tsv => writeln!(output, "number\tbegin_ns\tthread\tcall\tpath\tpath2\tpredecessors")?,
            GraphFormat::Json => write!(output, "{{\"order\": \"{policy}\", \"calls\": [")?,
            GraphFormat::Dot => {
                writeln!(output, "digraph {policy} {{")?;
                writeln!(output, "  node [shape=box, style=filled, colorscheme=set312, fontname=\"sans-serif\"];")?;
            }
        }
        Ok(Self { output, format, rows: 0, colours: BTreeMap::new() })
    }

    /// Writes a call.
    pub fn call(&mut self, number: u64, call: &Call, resolved: &Resolved, predecessors: &[u64]) -> io::Result<()> {
        let path = text(resolved.path.as_ref().map(crate::Name::as_bytes));
        let path2 = text(resolved.path2.as_ref().map(crate::Name::as_bytes));
        let (begin, thread, kind) = (call.begin, call.thread, call.kind.name());
        match self.format {
            GraphFormat::Table => {
                let arrow = if path2.is_empty() { "" } else { " -> " };
                let paths = format!("{path}{arrow}{path2}");
                let begin = seconds(begin);
                writeln!(
                    self.output,
                    "{number:>9}  {begin:>14}  {thread:>8}  {kind:<15}  {paths:<48}  {}",
                    joined(predecessors, " ")
                )?;
            }
            GraphFormat::Tsv => {
                let (begin, predecessors) = (begin.0, joined(predecessors, " "));
                writeln!(self.output, "{number}\t{begin}\t{thread}\t{kind}\t{path}\t{path2}\t{predecessors}")?;
            }
            GraphFormat::Json => {
                let mut row = json!({ "number": number, "begin_ns": begin.0, "thread": thread, "call": kind });
                for (key, path) in [("path", &path), ("path2", &path2)] {
                    if !path.is_empty() {
                        row[key] = json!(path);
                    }
                }
                row["predecessors"] = json!(predecessors);
                let comma = if self.rows == 0 { "" } else { "," };
                write!(self.output, "{comma}\n{row}")?;
            }
            GraphFormat::Dot => {
                let colour = 1 + self.colour(thread);
                let label = [kind, &path, &path2]
                    .iter()
                    .filter(|part| !part.is_empty())
                    .fold(number.to_string(), |label, part| {
                        format!("{label}\\n{}", part.replace('\\', "\\\\").replace('"', "\\\""))
                    });
                writeln!(self.output, "  {number} [label=\"{label}\", fillcolor={colour}];")?;
                for before in predecessors {
                    writeln!(self.output, "  {before} -> {number};")?;
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Ends the text. A table and an object have the figures of the graph in them.
    pub fn finish(mut self, summary: &Summary) -> io::Result<()> {
        match self.format {
            GraphFormat::Table | GraphFormat::Tsv => {}
            GraphFormat::Json => writeln!(self.output, "\n], \"summary\": {}}}", json!(summary))?,
            GraphFormat::Dot => writeln!(self.output, "}}")?,
        }
        self.output.flush()
    }

    fn colour(&mut self, thread: u32) -> u32 {
        let next = self.colours.len() as u32 % COLOURS;
        *self.colours.entry(thread).or_insert(next)
    }
}

/// A path on one line: bytes that are not UTF-8, and control characters, become `\xNN`.
fn text(path: Option<&[u8]>) -> Cow<'_, str> {
    let path = escape(path.unwrap_or_default());
    if !path.contains(char::is_control) {
        return path;
    }
    let mut shown = String::with_capacity(path.len() + 8);
    for character in path.chars() {
        if character.is_control() {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                shown.push_str(&format!("\\x{byte:02x}"));
            }
        } else {
            shown.push(character);
        }
    }
    shown.into()
}

fn seconds(time: Nanos) -> String {
    let sign = if time.0 < 0 { "-" } else { "" };
    let nanos = time.0.unsigned_abs();
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn joined(numbers: &[u64], separator: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallKind, Name};

    fn written(format: GraphFormat) -> String {
        let mut output = Vec::new();
        let mut writer = GraphWriter::new(&mut output, format, Policy::Fs).unwrap();
        let mut call = Call::new(Nanos(1_500_000_000), 7, CallKind::Mkdir);
        let mut resolved = Resolved { path: Some(Name::from("/a \"b\"")), ..Resolved::default() };
        writer.call(0, &call, &resolved, &[]).unwrap();
        call.kind = CallKind::Rename;
        resolved.path = Some(Name::from(&b"/a\n\xff\\"[..]));
        resolved.path2 = Some(Name::from("/c"));
        writer.call(3, &call, &resolved, &[0, 2]).unwrap();
        writer.finish(&Summary::default()).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_row_of_tsv_is_one_line_whatever_the_path() {
        let text = written(GraphFormat::Tsv);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "0\t1500000000\t7\tmkdir\t/a \"b\"\t\t");
        assert_eq!(lines[2], "3\t1500000000\t7\trename\t/a\\x0a\\xff\\\\\t/c\t0 2");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn json_is_one_object() {
        let object: serde_json::Value = serde_json::from_str(&written(GraphFormat::Json)).unwrap();
        assert_eq!(object["order"], "fs");
        assert_eq!(object["calls"][1]["predecessors"], json!([0, 2]));
        assert_eq!(object["calls"][1]["path"], "/a\\x0a\\xff\\\\");
        assert_eq!(object["summary"]["calls"], 0);
    }

    #[test]
    fn dot_quotes_labels_and_has_an_edge_for_each_predecessor() {
        let text = written(GraphFormat::Dot);
        assert!(text.starts_with("digraph fs {\n"));
        assert!(text.contains(r#"  0 [label="0\nmkdir\n/a \"b\"", fillcolor=1];"#), "{text}");
        assert!(text.contains(r#"\\x0a\\xff\\\\\n/c", fillcolor=1];"#), "{text}");
        assert!(text.contains("  0 -> 3;\n  2 -> 3;\n"));
        assert!(text.ends_with("}\n"));
    }

    #[test]
    fn the_columns_of_a_table_are_aligned() {
        let text = written(GraphFormat::Table);
        let column = text.lines().next().unwrap().find("predecessors").unwrap();
        assert_eq!(text.lines().nth(2).unwrap()[column..], *"0 2");
    }
}
