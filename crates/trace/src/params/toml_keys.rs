//! The keys of descriptions in TOML: the reader accepts these, and the JSON schema and the documentation list them.

use serde_json::{Map, Value, json};

/// The kind of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A text.
    Text,
    /// A text or a number, or a list of these.
    Texts,
    /// A number, or a number with a unit as text.
    Number,
    /// True or false.
    Flag,
    /// A table of names chosen by the author.
    Names,
    /// The same, where a name can also be a table with these keys.
    NamesOrTables(&'static [Key]),
    /// A table with these keys.
    Table(&'static [Key]),
    /// A table with exactly one of these keys.
    OneOf(&'static [Key]),
    /// Several tables, each with these keys.
    Tables(&'static [Key]),
    /// A table with these keys, or several.
    TableOrTables(&'static [Key]),
}

/// A key.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// The key in the text.
    pub name: &'static str,
    /// What its value must be.
    pub takes: Takes,
    /// One sentence without a full stop.
    pub help: &'static str,
    /// Whether it must be set.
    pub is_required: bool,
}

impl Key {
    /// A key that may be left out.
    pub const fn new(name: &'static str, takes: Takes, help: &'static str) -> Self {
        Self { name, takes, help, is_required: false }
    }

    /// The same key, but it must be set.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }
}

/// The JSON schema of a table with these keys.
pub fn schema_of(keys: &[Key]) -> Value {
    let properties = keys.iter().map(|key| {
        let mut value = key.takes.schema();
        value["description"] = key.help.into();
        (key.name.to_owned(), value)
    });
    let required: Vec<_> = keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties.collect::<Map<_, _>>(),
    })
}

impl Takes {
    fn schema(self) -> Value {
        let named = |values: Value| json!({ "type": "object", "additionalProperties": values });
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Number => json!({ "type": ["string", "number"] }),
            Self::Texts => {
                json!({ "type": ["string", "number", "array"], "items": { "type": ["string", "number"] } })
            }
            // A text as well, which may be a parameter.
            Self::Flag => json!({ "type": ["boolean", "string"] }),
            Self::Names => named(json!({ "type": ["string", "number", "boolean"] })),
            Self::NamesOrTables(keys) => named(json!({ "anyOf": [{ "type": ["string", "number"] }, schema_of(keys)] })),
            Self::Table(keys) => schema_of(keys),
            Self::OneOf(keys) => {
                let mut table = schema_of(keys);
                table["minProperties"] = 1.into();
                table["maxProperties"] = 1.into();
                table
            }
            Self::Tables(keys) => json!({ "type": "array", "items": schema_of(keys) }),
            Self::TableOrTables(keys) => {
                let one = schema_of(keys);
                json!({ "anyOf": [one, { "type": "array", "items": one }] })
            }
        }
    }
}
