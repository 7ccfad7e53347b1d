//! A field of a footer as it stands there: missing, of its type, or anything else.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::OptionValue;

/// What stands under a key. What is not of its type is kept as it is: a file that is written again loses nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stated<T> {
    /// There is no such key.
    #[default]
    Missing,
    /// A value of its type.
    Known(T),
    /// Null, or a value of another type.
    Other(OptionValue),
}

impl<T> Stated<T> {
    /// Whether there is no such key: nothing is written then.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// The value, if it is of its type.
    pub fn known(&self) -> Option<&T> {
        if let Self::Known(known) = self { Some(known) } else { None }
    }

    /// The same, to be changed.
    pub fn known_mut(&mut self) -> Option<&mut T> {
        if let Self::Known(known) = self { Some(known) } else { None }
    }
}

impl<T: Copy> Stated<T> {
    /// The value, if it is of its type.
    pub fn value(&self) -> Option<T> {
        self.known().copied()
    }
}

impl Stated<String> {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        self.known().map(String::as_str)
    }
}

impl<T> Stated<Vec<T>> {
    /// Its elements; none if it is no list of them.
    pub fn list(&self) -> &[T] {
        self.known().map_or(&[], Vec::as_slice)
    }
}

impl<T> From<T> for Stated<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

/// `None` is null.
impl<T> From<Option<T>> for Stated<T> {
    fn from(known: Option<T>) -> Self {
        known.map_or(Self::Other(OptionValue::Null), Self::Known)
    }
}

impl<T: Serialize> Serialize for Stated<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => to.serialize_unit(),
            Self::Known(known) => known.serialize(to),
            Self::Other(other) => other.serialize(to),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Stated<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(from)?;
        Ok(T::deserialize(&value).map_or_else(|_| Self::Other(OptionValue::from_json(value)), Self::Known))
    }
}

/// A struct of which each field is [`Stated`]. Keys without a field are kept in `rest`.
macro_rules! stated {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $(
                $(#[$of])*
                #[serde(skip_serializing_if = "crate::model::run_info::Stated::is_missing")]
                pub $field: crate::model::run_info::Stated<$type>,
            )*
            /// Keys that are not known here.
            #[serde(flatten)]
            pub rest: crate::model::run_info::OpenMap,
        }
    };
}
pub(super) use stated;
