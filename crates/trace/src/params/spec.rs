//! What can be named and set: its name, its parameters, and how they are typed.

/// Something that can be named and set: a transform of a load, a way to choose positions.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence without a full stop.
    pub about: &'static str,
    /// What a person should know beyond that; empty if nothing.
    pub details: &'static str,
    /// What can be set.
    pub params: &'static [ParamSpec],
    /// How it may be typed.
    pub example: &'static str,
}

/// One value that can be set.
#[derive(Debug)]
pub struct ParamSpec {
    /// Its name.
    pub name: &'static str,
    /// What it is set to.
    pub takes: ParamType,
    /// What holds where it is not set.
    pub unset: ParamDefault,
    /// What it means, in one phrase without a full stop.
    pub help: &'static str,
}

/// What kind of value is taken.
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
    /// A length or a position: sectors of 512 bytes (`256`) or with a unit, bytes (`4k`, `64M`, `2G`).
    Sectors,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Any text; in quotes if it has spaces or bars.
    Text,
    /// A text that is not to be repeated, not even in the file that it helped to make.
    Secret,
    /// Several texts, separated by commas.
    List,
}

/// What holds where a value is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamDefault {
    /// This, in the way in which it would be typed.
    Default(&'static str),
    /// It must be set.
    Refused,
    /// This, which can't be typed.
    Means(&'static str),
}

impl ParamType {
    /// What stands for the value in help.
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
    /// How it is typed: `every=COUNT`, `by=request|region`.
    pub fn usage(&self) -> String {
        match self.takes {
            ParamType::Word(words) => format!("{}={}", self.name, words.join("|")),
            takes => format!("{}={}", self.name, takes.placeholder()),
        }
    }
}

impl Definition {
    /// How it is typed, and what it takes: several lines of plain text.
    pub fn help(&self) -> String {
        let mut text = format!("{}: {}", self.name, self.about);
        if !self.details.is_empty() {
            text += &format!("\n  {}", self.details.replace('\n', "\n  "));
        }
        for param in self.params {
            text += &format!("\n  {:<24} {} ({})", param.usage(), param.help, param.unset.described());
        }
        text + &format!("\n  Example: {}", self.example)
    }
}

impl ParamDefault {
    /// What is said of it in parentheses.
    pub fn described(self) -> String {
        match self {
            Self::Default(text) => format!("default {text}"),
            Self::Refused => "must be set".into(),
            Self::Means(what) => format!("default: {what}"),
        }
    }
}
