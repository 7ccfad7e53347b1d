//! Definitions: a name and its parameters.

/// A name with parameters: a transform of a load, a distribution of positions.
#[derive(Debug)]
pub struct Definition {
    /// The word that the phrase begins with.
    pub name: &'static str,
    /// One sentence without a full stop.
    pub about: &'static str,
    /// Further help; may be empty.
    pub details: &'static str,
    /// The parameters that may follow the name.
    pub params: &'static [ParamSpec],
    /// An example as typed.
    pub example: &'static str,
}

/// A parameter.
#[derive(Debug)]
pub struct ParamSpec {
    /// The key before `=`.
    pub name: &'static str,
    /// What its value must be.
    pub takes: ParamType,
    /// Its value if it is not set.
    pub default: ParamDefault,
    /// One phrase without a full stop.
    pub help: &'static str,
}

/// The kind of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A whole number: `32768`, `10k` (10 000), `2M`.
    Count,
    /// A number: `2.5`.
    Number,
    /// A number above zero: `2.5`, `2k`.
    Positive,
    /// A part of the whole, from 0 to 1: `0.7`, `70%`.
    Share,
    /// Requests per second, above zero: `500`, `2k`.
    Rate,
    /// A time: seconds (`300`, `0.5`) or with a unit (`20ms`, `5m`, `1h`).
    Time,
    /// A length or a position: bytes (`4096`, `4k`, `64M`), or sectors (`8s`).
    Sectors,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Any text; in quotes if it has spaces or bars.
    Text,
    /// A text that must not appear in messages or in the resulting file.
    Secret,
    /// Several texts, separated by commas.
    List,
}

/// The value of a parameter that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamDefault {
    /// This value, as it would be typed.
    Value(&'static str),
    /// None: the parameter must be set.
    Required,
    /// A default that no value can express, described in words.
    Described(&'static str),
}

impl ParamType {
    /// The placeholder of the value in help.
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Count => "COUNT",
            Self::Number | Self::Positive => "NUMBER",
            Self::Share => "SHARE",
            Self::Rate => "RATE",
            Self::Time => "TIME",
            Self::Sectors => "LENGTH",
            Self::Word(_) => "WORD",
            Self::Text | Self::Secret => "TEXT",
            Self::List => "A,B,…",
        }
    }
}

impl ParamSpec {
    /// Its syntax: `every=COUNT`, `by=request|region`.
    pub fn usage(&self) -> String {
        match self.takes {
            ParamType::Word(words) => format!("{}={}", self.name, words.join("|")),
            takes => format!("{}={}", self.name, takes.placeholder()),
        }
    }
}

impl Definition {
    /// Its name, parameters and example: several lines of plain text.
    pub fn help(&self) -> String {
        let mut text = format!("{}: {}", self.name, self.about);
        if !self.details.is_empty() {
            text += &format!("\n  {}", self.details.replace('\n', "\n  "));
        }
        for param in self.params {
            text += &format!("\n  {:<24} {} ({})", param.usage(), param.help, param.default.described());
        }
        text + &format!("\n  Example: {}", self.example)
    }
}

impl ParamDefault {
    /// The warning in parentheses in help.
    pub fn described(self) -> String {
        match self {
            Self::Value(text) => format!("default {text}"),
            Self::Required => "must be set".into(),
            Self::Described(what) => format!("default: {what}"),
        }
    }
}
