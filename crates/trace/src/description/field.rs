//! The fields of a request, and where a trace has them.

use crate::params::Section;

/// What a column, a group or a number of a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Role {
    At,
    Completed,
    Latency,
    Queued,
    Op,
    Offset,
    Size,
    Device,
    Minor,
    Pid,
    Comm,
    Fua,
    Preflush,
    Only,
}

impl Role {
    /// All roles, by number.
    pub const ALL: [Self; 14] = [
        Self::At,
        Self::Completed,
        Self::Latency,
        Self::Queued,
        Self::Op,
        Self::Offset,
        Self::Size,
        Self::Device,
        Self::Minor,
        Self::Pid,
        Self::Comm,
        Self::Fua,
        Self::Preflush,
        Self::Only,
    ];

    /// Its key in a description, and the name of its group in a pattern.
    pub fn name(self) -> &'static str {
        [
            "at",
            "completed",
            "latency",
            "queued",
            "op",
            "offset",
            "size",
            "device",
            "minor",
            "pid",
            "comm",
            "fua",
            "preflush",
            "only",
        ][self as usize]
    }

    /// The role of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// What a row has for a role.
#[derive(Clone, Copy, Debug, Default)]
pub enum Raw<'a> {
    /// Nothing.
    #[default]
    Missing,
    /// A text, without blanks around it.
    Text(&'a [u8]),
    /// A number of a record.
    Number(i128),
}

/// What a row has for each role.
pub type Slots<'a> = [Raw<'a>; Role::ALL.len()];

/// Where a field is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A column: from 0, or from the end if negative.
    Column(i32),
    /// The column whose heading has one of these names.
    Names(Vec<String>),
    /// A group of the pattern.
    Group,
    /// A number in a record.
    Bytes(Bytes),
    /// All requests have the same.
    Always,
}

/// A number in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    pub at: usize,
    pub width: usize,
    pub is_signed: bool,
    pub order: ByteOrder,
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest first.
    #[default]
    Little,
    /// The highest first.
    Big,
}

impl ByteOrder {
    /// `little` or `big`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "little" => Ok(Self::Little),
            "big" => Ok(Self::Big),
            other => Err(format!("`{other}` is neither little nor big")),
        }
    }
}

impl Bytes {
    /// The number in a record that has these bytes.
    pub fn of(self, record: &[u8]) -> Option<i128> {
        let bytes = record.get(self.at..self.at + self.width)?;
        let mut whole = [0; 8];
        match self.order {
            ByteOrder::Little => whole[..self.width].copy_from_slice(bytes),
            ByteOrder::Big => {
                whole[..self.width].copy_from_slice(bytes);
                whole[..self.width].reverse();
            }
        }
        let number = u64::from_le_bytes(whole);
        let unused = 64 - 8 * self.width as u32;
        Some(if self.is_signed { ((number << unused).cast_signed() >> unused).into() } else { number.into() })
    }
}

/// A field of the description.
#[derive(Clone, Debug)]
pub struct Field {
    pub role: Role,
    pub place: Place,
    /// Whether a heading may lack it.
    pub is_optional: bool,
}

/// How rows are laid out, as far as places depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Columns,
    Pattern,
    /// Of so many bytes.
    Records(usize),
}

impl Field {
    /// Reads where a field is.
    pub fn read(role: Role, own: &Section<'_, '_>, kind: Kind, order: ByteOrder) -> Result<Self, String> {
        let other = |key: &str, only: &str| own.error(key, &format!("only {only} have this; remove it"));
        for key in ["byte", "width", "signed"] {
            if own.has(key) && !matches!(kind, Kind::Records(_)) {
                return Err(other(key, "records (record = BYTES)"));
            }
        }
        if own.has("column") && kind != Kind::Columns {
            return Err(other("column", "lines of columns"));
        }
        let place = match kind {
            _ if own.has("always") => Place::Always,
            Kind::Pattern => Place::Group,
            Kind::Columns => Self::column(own)?,
            Kind::Records(bytes) => Place::Bytes(Self::bytes(own, bytes, order)?),
        };
        let is_optional = own.flag("optional")?.unwrap_or(false);
        if is_optional && !matches!(place, Place::Names(_)) {
            return Err(own.error("optional", "only a column with a name may be missing"));
        }
        Ok(Self { role, place, is_optional })
    }

    fn column(own: &Section<'_, '_>) -> Result<Place, String> {
        let names = own.texts("column")?;
        match names.as_slice() {
            [] => Err(own.error("column", "missing; say its number, from 1, or its name in the heading")),
            [one] if is_number(one) => match one.parse::<i32>() {
                Ok(0) => Err(own.error("column", "columns count from 1, or from -1 at the end")),
                Ok(number @ -1000..=1000) => Ok(Place::Column(if number > 0 { number - 1 } else { number })),
                _ => Err(own.error("column", "a line has at most 1000 columns")),
            },
            _ if names.iter().any(|name| name.trim().is_empty()) => Err(own.error("column", "a name is empty")),
            _ => Ok(Place::Names(names)),
        }
    }

    fn bytes(own: &Section<'_, '_>, record: usize, order: ByteOrder) -> Result<Bytes, String> {
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("`{text}` is not a whole number"));
        let at = own.required("byte", number)?;
        let width = own.required("width", number)?;
        if !(1..=8).contains(&width) {
            return Err(own.error("width", "a number has 1 to 8 bytes"));
        }
        if at.checked_add(width).is_none_or(|end| end > record) {
            return Err(own.error(
                "byte",
                &format!("byte {at} and the {width} from there are not within a record of {record} bytes"),
            ));
        }
        Ok(Bytes { at, width, is_signed: own.flag("signed")?.unwrap_or(false), order })
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
