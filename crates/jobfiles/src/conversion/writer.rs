//! Writes the text of a program.

use std::fmt::Write;

use crate::origin::{Origin, Origins};

/// Keys with their values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(Vec<(&'static str, String)>);

impl Table {
    /// A key whose value is a text.
    pub fn text(&mut self, key: &'static str, value: &str) {
        self.0.push((key, quoted(value)));
    }

    /// A key whose value is a number, or true or false.
    pub fn plain(&mut self, key: &'static str, value: impl ToString) {
        self.0.push((key, value.to_string()));
    }

    /// The value of `name`, in quotes.
    pub fn name(&self) -> &str {
        self.0
            .iter()
            .find(|(key, _)| *key == "name")
            .map_or("", |(_, name)| name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name))
    }

    /// Whether a key has this text as its value.
    fn has(&self, key: &str, value: &str) -> bool {
        self.0.iter().any(|(name, text)| *name == key && *text == quoted(value))
    }

    /// Replaces the value of `name`.
    pub fn rename(&mut self, name: &str) {
        if let Some(old) = self.0.iter_mut().find(|(key, _)| *key == "name") {
            old.1 = format!("\"{name}\"");
        }
    }

    fn write(&self, text: &mut String) {
        for (key, value) in &self.0 {
            _ = writeln!(text, "{key} = {value}");
        }
    }
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamText {
    /// Above the stream.
    pub comment: String,
    pub origin: Origin,
    pub keys: Table,
    pub steps: Vec<Table>,
}

impl StreamText {
    /// Whether its only operation is to read.
    pub fn only_reads(&self) -> bool {
        self.steps.is_empty() && self.keys.has("op", "read")
    }
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramText {
    pub name: String,
    pub about: String,
    /// Above the program, a line each.
    pub comments: Vec<String>,
    /// Each with its size, or its share of the target.
    pub devices: Vec<(String, String)>,
    pub streams: Vec<StreamText>,
}

impl ProgramText {
    /// The text, and where its streams come from in the job file.
    pub fn write(&self, file: &str) -> (String, Origins) {
        let (mut line, mut counted) = (1, 0);
        let mut origins = Origins { file: file.to_owned(), streams: Vec::new() };
        let mut text = format!("name = {}\nabout = {}\n", quoted(&self.name), quoted(&self.about));
        for comment in &self.comments {
            _ = writeln!(text, "# {}", plain(comment));
        }
        if !self.devices.is_empty() {
            text += "\n[devices]\n";
        }
        for (name, size) in &self.devices {
            _ = writeln!(text, "{} = {}", quoted(name), quoted(size));
        }
        for stream in &self.streams {
            text += "\n";
            if !stream.comment.is_empty() {
                _ = writeln!(text, "# {}", plain(&stream.comment));
            }
            line += text[counted..].matches('\n').count();
            counted = text.len();
            origins.streams.push((line, stream.origin.clone()));
            text += "[[stream]]\n";
            stream.keys.write(&mut text);
            for step in &stream.steps {
                text += "\n[[stream.step]]\n";
                step.write(&mut text);
            }
        }
        (text, origins)
    }
}

/// A text without characters that a line cannot have, or that a program would read as a parameter.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in plain(text).chars() {
        match c {
            // `$` begins a parameter.
            '$' => quoted.push('_'),
            '"' | '\\' => quoted.extend(['\\', c]),
            _ => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;

    #[test]
    fn any_name_is_valid_in_a_program() {
        let mut keys = Table::default();
        keys.text("name", "s\n\"$x\\");
        keys.plain("closed", true);
        keys.text("op", "read");
        let stream = StreamText { comment: "a\nb = 1".into(), keys, ..StreamText::default() };
        let program = ProgramText {
            name: "p".into(),
            about: "A test".into(),
            comments: vec!["x\ny".into()],
            devices: vec![("a b\"".into(), "10%".into())],
            streams: vec![stream],
        };
        let program = Program::parse("p.toml", &program.write("p.fio").0).unwrap();
        assert_eq!(program.streams()[0].name, "s \"_x\\");
        assert_eq!(program.device_names(), ["a b\""]);
    }
}
