//! A field of a footer, kept as it was read: missing, of the expected type, or of any other.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::OptionValue;

/// The value of a key. A value of another type is kept unchanged, so that a file loses nothing when it is written again.
#[derive(Debug, Default, PartialEq)]
pub enum Field<T> {
    /// There is no such key.
    #[default]
    Missing,
    /// A value of the expected type.
    Known(T),
    /// Null, or a value of another type.
    Other(OptionValue),
}

impl<T: Clone> Clone for Field<T> {
    /// Inlined into the structs of fields, with the code that drops a part of a struct, this would be 2 % of the program.
    #[inline(never)]
    fn clone(&self) -> Self {
        match self {
            Self::Missing => Self::Missing,
            Self::Known(known) => Self::Known(known.clone()),
            Self::Other(other) => Self::Other(other.clone()),
        }
    }
}

impl<T> Field<T> {
    /// Whether there is no such key; then none is written.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// The value, if it has the expected type.
    pub fn known(&self) -> Option<&T> {
        if let Self::Known(known) = self { Some(known) } else { None }
    }

    /// Like [`Field::known`], mutable.
    pub fn known_mut(&mut self) -> Option<&mut T> {
        if let Self::Known(known) = self { Some(known) } else { None }
    }
}

impl<T: Copy> Field<T> {
    /// The value, if it has the expected type.
    pub fn value(&self) -> Option<T> {
        self.known().copied()
    }
}

impl Field<String> {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        self.known().map(String::as_str)
    }
}

impl<T> Field<Vec<T>> {
    /// The elements; none if the value is not a list of them.
    pub fn list(&self) -> &[T] {
        self.known().map_or(&[], Vec::as_slice)
    }
}

impl<T> From<T> for Field<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

/// `None` becomes null.
impl<T> From<Option<T>> for Field<T> {
    fn from(known: Option<T>) -> Self {
        known.map_or(Self::Other(OptionValue::Null), Self::Known)
    }
}

impl<T: Serialize> Serialize for Field<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => to.serialize_unit(),
            Self::Known(known) => known.serialize(to),
            Self::Other(other) => other.serialize(to),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(from)?;
        Ok(T::deserialize(&value).map_or_else(|_| Self::Other(OptionValue::from_json(value)), Self::Known))
    }
}

/// The object `run` of a footer: has any keys, or is null. Its keys are written in alphabetical order, known or not, so that a
/// table that is written again stays the same.
pub mod object {
    use serde::de::{DeserializeOwned, Error as _};
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    /// Reads it.
    ///
    /// # Errors
    /// If it is no object.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<Option<Box<T>>, D::Error> {
        match Option::deserialize(from)? {
            None => Ok(None),
            Some(run @ Value::Object(_)) => T::deserialize(run).map(Box::new).map(Some).map_err(D::Error::custom),
            Some(_) => Err(D::Error::custom("`run` is not an object")),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    pub fn serialize<T: Serialize, S: Serializer>(run: &Option<Box<T>>, to: S) -> Result<S::Ok, S::Error> {
        serde_json::to_value(run).map_err(S::Error::custom)?.serialize(to)
    }
}

/// Defines a struct whose fields are all [`Field`]s, which must be in scope. Unknown keys are kept in `rest`.
#[macro_export]
macro_rules! fields {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$of])*
                #[serde(skip_serializing_if = "Field::is_missing")]
                pub $field: Field<$type>,
            )*
            /// Unknown keys.
            #[serde(flatten)]
            pub rest: $crate::run_info::OpenMap,
        }
    };
}
pub(super) use fields;
