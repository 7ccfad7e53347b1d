//! The functions of a script that are called at events.

use mlua::{Error, Function, Result, Table, Value};

/// The functions that are called at events.
pub(super) struct Handlers {
    pub start: Option<Function>,
    pub timer: Option<Function>,
    pub completion: Option<Function>,
    pub message: Option<Function>,
}

impl Handlers {
    /// Those of an instance, among its variables.
    pub fn of(variables: &Table) -> Result<Self> {
        let handler = |name: &str| match variables.raw_get::<Value>(name)? {
            Value::Nil => Ok(None),
            Value::Function(function) => Ok(Some(function)),
            other => Err(Error::runtime(format!(
                "`{name}` is the name of a handler, but it is a {}; rename the variable, or make it `local`",
                other.type_name()
            ))),
        };
        Ok(Self {
            start: handler("start")?,
            timer: handler("timer")?,
            completion: handler("completion")?,
            message: handler("message")?,
        })
    }
}
