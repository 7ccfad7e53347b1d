//! What the values of a row mean: units, words, and how they are written.

use super::field::Role;
use super::units::{Base, SizeUnit, TimeUnit};
use super::words::{Map, Meaning, Operations, Word};
use crate::model::metadata::RequestTime;
use crate::model::request::Op;
use crate::params::{Section, did_you_mean, parse_bytes};

/// What the values of a row mean.
#[derive(Clone, Debug)]
pub struct Units {
    pub at: TimeText,
    pub origin: Origin,
    pub completed: TimeUnit,
    pub latency: TimeUnit,
    pub queued: TimeUnit,
    pub op: Operations,
    pub offset: SizeUnit,
    pub size: SizeUnit,
    /// The size of all requests.
    pub always_size: Option<u64>,
    pub spelling: Spelling,
    pub always_device: Option<Box<[u8]>>,
    pub only: Vec<Word>,
    pub digits: Digits,
    pub request_time: RequestTime,
    /// Fields whose unit is in the heading.
    pub from_heading: Vec<Role>,
}

/// How a time is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeText {
    Number(TimeUnit),
    /// A date with a time of day.
    Date,
    /// The same in a format of strftime.
    Formatted(String),
    /// A time of day.
    Clock,
}

/// What times count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// 1970 if the first time is of 1990 or later, else the start of the trace.
    ByMagnitude,
    Start,
    Boot,
    Since1970,
    Since1601,
    /// The row before.
    Before,
}

/// How a device is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    Name,
    Number,
    MajorMinor,
    DevT,
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digits {
    pub thousands: Option<u8>,
    pub decimal: Option<u8>,
}

impl Units {
    pub(super) fn new() -> Self {
        Self {
            at: TimeText::Number(TimeUnit::SECONDS),
            origin: Origin::ByMagnitude,
            completed: TimeUnit::SECONDS,
            latency: TimeUnit::SECONDS,
            queued: TimeUnit::SECONDS,
            op: Operations::Usual,
            offset: SizeUnit::BYTES,
            size: SizeUnit::BYTES,
            always_size: None,
            spelling: Spelling::Name,
            always_device: None,
            only: Vec::new(),
            digits: Digits::default(),
            request_time: RequestTime::default(),
            from_heading: Vec::new(),
        }
    }

    /// Reads what the values of a field mean.
    pub(super) fn read(&mut self, role: Role, own: &Section<'_, '_>) -> Result<(), String> {
        let unit = own.text("unit")?;
        if unit.as_deref() == Some("heading") {
            self.from_heading.push(role);
        }
        match role {
            Role::At => {
                self.at = time_text(own)?;
                self.origin = own.parsed("origin", Origin::parse)?.unwrap_or(match self.at {
                    TimeText::Number(_) => Origin::ByMagnitude,
                    TimeText::Clock => Origin::Boot,
                    _ => Origin::Since1970,
                });
                if !matches!(self.at, TimeText::Number(_)) && own.has("origin") {
                    return Err(own.error("origin", "dates and times of day have their own; remove it"));
                }
            }
            Role::Completed => self.completed = time_unit(own)?,
            Role::Latency => self.latency = time_unit(own)?,
            Role::Queued => self.queued = time_unit(own)?,
            Role::Offset => self.offset = size_unit(own)?,
            Role::Size => {
                self.size = size_unit(own)?;
                self.always_size = own.parsed("always", parse_bytes)?;
            }
            Role::Op => self.op = operations(own)?,
            Role::Device => {
                self.spelling = own.parsed("spelling", Spelling::parse)?.unwrap_or(Spelling::Name);
                self.always_device = own.text("always")?.map(|name| name.into_bytes().into());
            }
            Role::Only => {
                self.only = own.texts("words")?.iter().map(|word| Word::new(word)).collect();
                if self.only.is_empty() {
                    return Err(own.error("words", "missing; say which rows to take"));
                }
            }
            Role::Minor | Role::Pid | Role::Comm | Role::Fua | Role::Preflush => {}
        }
        if role == Role::Offset && own.has("always") {
            return Err(own.error("always", "requests of a trace differ in position; say where it is"));
        }
        Ok(())
    }

    /// Takes the unit of a field from the heading. One that is unknown changes nothing.
    pub fn read_heading(&mut self, role: Role, unit: &str) {
        let (time, size) = (TimeUnit::parse(unit).ok(), SizeUnit::parse(unit).ok());
        match (role, time, size) {
            (Role::At, Some(time), _) => self.at = TimeText::Number(time),
            (Role::Completed, Some(time), _) => self.completed = time,
            (Role::Latency, Some(time), _) => self.latency = time,
            (Role::Queued, Some(time), _) => self.queued = time,
            (Role::Offset, _, Some(size)) => self.offset = size,
            (Role::Size, _, Some(size)) => self.size = size,
            _ => {}
        }
    }
}

fn time_text(own: &Section<'_, '_>) -> Result<TimeText, String> {
    let date = own.text("date")?;
    let kind = match own.text("unit")?.as_deref() {
        _ if date.is_some() => TimeText::Formatted(date.unwrap_or_default()),
        Some("date") => TimeText::Date,
        Some("clock") => TimeText::Clock,
        _ => return time_unit(own).map(TimeText::Number),
    };
    if own.has("factor") {
        return Err(own.error("factor", "only numbers have a factor; remove it"));
    }
    Ok(kind)
}

fn time_unit(own: &Section<'_, '_>) -> Result<TimeUnit, String> {
    let parse = |text: &str| if text == "heading" { Ok(TimeUnit::SECONDS) } else { TimeUnit::parse(text) };
    let unit = own.parsed("unit", parse)?.unwrap_or(TimeUnit::SECONDS);
    Ok(own.parsed("factor", |factor| unit.times(factor))?.unwrap_or(unit))
}

fn size_unit(own: &Section<'_, '_>) -> Result<SizeUnit, String> {
    let parse = |text: &str| if text == "heading" { Ok(SizeUnit::BYTES) } else { SizeUnit::parse(text) };
    let unit = own.parsed("unit", parse)?.unwrap_or(SizeUnit::BYTES);
    Ok(unit.in_base(own.parsed("base", Base::parse)?.unwrap_or_default()))
}

fn operations(own: &Section<'_, '_>) -> Result<Operations, String> {
    let op = |text: &str| match Meaning::parse(text)? {
        Meaning::Op(op, _) => Ok(op),
        Meaning::Skip => Err("all requests would be left out".to_owned()),
    };
    if let Some(op) = own.parsed::<Op>("always", op)? {
        return Ok(Operations::Always(op));
    }
    if !own.has("map") {
        for key in ["mask", "base"] {
            if own.has(key) {
                return Err(
                    own.error(key, "only numbers of a map have this; add map = { 0 = \"read\", 1 = \"write\" }")
                );
            }
        }
        return Ok(Operations::Usual);
    }
    let mask = |text: &str| Base::Ten.whole(text.as_bytes()).ok_or_else(|| format!("`{text}` is not a whole number"));
    let mut map = Map {
        mask: own.parsed("mask", mask)?,
        base: own.parsed("base", Base::parse)?.unwrap_or_default(),
        ..Map::default()
    };
    for (word, value) in own.names("map")? {
        let meaning = own.text.scalar(value).and_then(|text| Meaning::parse(&text));
        let meaning =
            meaning.map_err(|why| own.text.error(value.span().start, &format!("{}.map, {word}", own.path), &why))?;
        match word {
            "*" => map.others = Some(meaning),
            _ => map.words.push((Word::new(word), meaning)),
        }
    }
    Ok(Operations::Map(map))
}

choice!(Origin {
    "start" => Self::Start, "boot" => Self::Boot, "1970" => Self::Since1970, "1601" => Self::Since1601,
    "before" => Self::Before,
});
choice!(Spelling {
    "name" => Self::Name, "number" => Self::Number, "major:minor" => Self::MajorMinor, "dev_t" => Self::DevT,
});
