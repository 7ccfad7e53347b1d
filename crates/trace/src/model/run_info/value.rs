//! Untyped values: of options, and of keys of other programs and versions.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The value of an option, or any other JSON value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OptionValue {
    /// The option was not given and has no default.
    #[default]
    Null,
    /// True or false.
    Flag(bool),
    /// An integer.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// Text, or the name of an enum value.
    Text(String),
    /// A list of values.
    List(Vec<OptionValue>),
    /// Named values.
    Map(OpenMap),
}

impl OptionValue {
    /// The text, if it is text.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The integer, if it is one that fits into `N`.
    pub fn integer<N: TryFrom<i128>>(&self) -> Option<N> {
        if let Self::Integer(number) = self { N::try_from(*number).ok() } else { None }
    }

    /// The integer or float, if it is a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn from_json(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Flag(flag),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Integer(number.into()),
                (_, Some(number)) => Self::Integer(number.into()),
                _ => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Self::Text(text),
            Value::Array(all) => Self::List(all.into_iter().map(Self::from_json).collect()),
            Value::Object(all) => {
                Self::Map(OpenMap(all.into_iter().map(|(name, value)| (name, Self::from_json(value))).collect()))
            }
        }
    }
}

impl Serialize for OptionValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Flag(flag) => to.serialize_bool(*flag),
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => to.serialize_i64(number),
                (_, Ok(number)) => to.serialize_u64(number),
                _ => to.serialize_f64(*number as f64),
            },
            Self::Number(number) => to.serialize_f64(*number),
            Self::Text(text) => to.serialize_str(text),
            Self::List(all) => all.serialize(to),
            Self::Map(all) => all.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(Self::from_json)
    }
}

impl From<bool> for OptionValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for OptionValue {
    fn from(number: u64) -> Self {
        Self::Integer(number.into())
    }
}

impl From<f64> for OptionValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Named values, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenMap(BTreeMap<String, OptionValue>);

impl OpenMap {
    /// The serialized fields of a struct, or entries of a map.
    ///
    /// # Panics
    /// If the value is neither, or if its serialization fails; plain data never does.
    pub fn of(object: &impl Serialize) -> Self {
        match serde_json::to_value(object).map(OptionValue::from_json) {
            Ok(OptionValue::Map(map)) => map,
            other => panic!("not an object of plain data: {other:?}"),
        }
    }

    /// The value with this name; null if there is none.
    pub fn get(&self, name: &str) -> &OptionValue {
        self.0.get(name).unwrap_or(&OptionValue::Null)
    }

    /// Sets a value.
    pub fn insert(&mut self, name: &str, value: impl Into<OptionValue>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &OptionValue)> {
        self.0.iter()
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
