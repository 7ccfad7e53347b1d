//! The values that were set, checked against what can be set.

use super::quantity::{parse_count, parse_positive, parse_rate, parse_sectors, parse_share, parse_time};
use super::{Definition, ParamDefault, ParamSpec, ParamType, did_you_mean};
use crate::model::units::{Nanos, Sectors};

/// A value of one of the kinds of [`ParamType`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A number, a share, or a rate in requests per second.
    Number(f64),
    /// A time.
    Time(Nanos),
    /// A length or a position.
    Sectors(Sectors),
    /// A word, a text, a secret.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

/// A setting as it was typed, and its value.
#[derive(Clone, Debug)]
pub struct Setting {
    param: &'static ParamSpec,
    /// As typed; `None` where the default holds.
    typed: Option<String>,
    value: Option<Value>,
}

/// All the settings of a form, those that were left out at their defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    form: &'static Definition,
    settings: Vec<Setting>,
}

impl Settings {
    /// Checks what was typed.
    ///
    /// # Errors
    /// If a name is unknown or comes twice, a value is of another kind, or one that must be set is missing.
    pub fn new(form: &'static Definition, typed: &[(String, String)]) -> Result<Self, String> {
        for (index, (name, _)) in typed.iter().enumerate() {
            let names = form.params.iter().map(|param| param.name);
            if !names.clone().any(|known| known == name) {
                return Err(if form.params.is_empty() {
                    format!("{} takes no settings", form.name)
                } else {
                    format!("{} has no setting `{name}`; {}", form.name, did_you_mean(name, names))
                });
            }
            if typed[..index].iter().any(|(other, _)| other == name) {
                return Err(format!("{}: {name} is set twice", form.name));
            }
        }
        let settings = form.params.iter().map(|param| {
            let typed = typed.iter().find(|(name, _)| name == param.name).map(|(_, value)| value.clone());
            let value = match (&typed, param.unset) {
                (Some(text), _) => {
                    Some(param.parse(text).map_err(|why| format!("{}: {}: {why}", form.name, param.name))?)
                }
                (None, ParamDefault::Default(text)) => {
                    Some(param.parse(text).map_err(|why| format!("{}: default of {}: {why}", form.name, param.name))?)
                }
                (None, ParamDefault::Means(_)) => None,
                (None, ParamDefault::Refused) => {
                    return Err(format!(
                        "{} needs {} ({}); for example: {}",
                        form.name,
                        param.usage(),
                        param.help,
                        form.example
                    ));
                }
            };
            Ok(Setting { param, typed, value })
        });
        Ok(Self { form, settings: settings.collect::<Result<_, String>>()? })
    }

    /// The name of the form.
    pub fn name(&self) -> &'static str {
        self.form.name
    }

    /// Whether the form has a setting of that name, set or not.
    pub fn has(&self, name: &str) -> bool {
        self.form.params.iter().any(|param| param.name == name)
    }

    /// How all of it would be typed, defaults left out and secrets not told.
    pub fn typed(&self) -> String {
        let mut text = self.form.name.to_owned();
        for Setting { param, typed, .. } in &self.settings {
            let Some(typed) = typed else { continue };
            let shown = if param.takes == ParamType::Secret { "…" } else { typed };
            text += &format!(" {}={}", param.name, quoted(shown));
        }
        text
    }

    /// Each setting by its name, with the text that stands for it: typed, or the default. Secrets are not told.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.settings.iter().filter_map(|Setting { param, typed, .. }| {
            let default = if let ParamDefault::Default(text) = param.unset { Some(text) } else { None };
            let text = typed.as_deref().or(default)?;
            Some((param.name, if param.takes == ParamType::Secret { "…" } else { text }))
        })
    }

    /// A whole number.
    pub fn count(&self, name: &str) -> u64 {
        self.optional_count(name).unwrap_or_else(|| self.mistaken(name))
    }

    /// A whole number, if it was set.
    pub fn optional_count(&self, name: &str) -> Option<u64> {
        self.get(name).map(|value| if let Value::Count(n) = value { *n } else { self.mistaken(name) })
    }

    /// A number, a share, or a rate.
    pub fn number(&self, name: &str) -> f64 {
        if let Some(Value::Number(x)) = self.get(name) { *x } else { self.mistaken(name) }
    }

    /// A time.
    pub fn time(&self, name: &str) -> Nanos {
        self.optional_time(name).unwrap_or_else(|| self.mistaken(name))
    }

    /// A time, if it was set.
    pub fn optional_time(&self, name: &str) -> Option<Nanos> {
        self.get(name).map(|value| if let Value::Time(t) = value { *t } else { self.mistaken(name) })
    }

    /// A length or a position.
    pub fn sectors(&self, name: &str) -> Sectors {
        self.optional_sectors(name).unwrap_or_else(|| self.mistaken(name))
    }

    /// A length or a position, if it was set.
    pub fn optional_sectors(&self, name: &str) -> Option<Sectors> {
        self.get(name).map(|value| if let Value::Sectors(s) = value { *s } else { self.mistaken(name) })
    }

    /// A word or a text.
    pub fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_else(|| self.mistaken(name))
    }

    /// A word or a text, if it was set.
    pub fn optional_text(&self, name: &str) -> Option<&str> {
        self.get(name).map(|value| if let Value::Text(text) = value { text.as_str() } else { self.mistaken(name) })
    }

    /// Several texts; none if it was not set.
    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::List(texts)) => texts,
            None => &[],
            _ => self.mistaken(name),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let setting = self.settings.iter().find(|setting| setting.param.name == name);
        setting.unwrap_or_else(|| self.mistaken(name)).value.as_ref()
    }

    /// The form's own code asks for what the form does not have; the tests build every form.
    fn mistaken(&self, name: &str) -> ! {
        panic!("the form {} has no such setting of this kind: {name}", self.form.name)
    }
}

/// In quotes if it needs them.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '|' | '\'' | '"'));
    match plain {
        true => text.to_owned(),
        false if !text.contains('\'') => format!("'{text}'"),
        false if !text.contains('"') => format!("\"{text}\""),
        // It has both kinds: each piece of it is put into the other one.
        false => text.split_inclusive('\'').fold(String::new(), |line, piece| match piece.strip_suffix('\'') {
            Some("") => line + "\"'\"",
            Some(before) => line + &format!("'{before}'\"'\""),
            None => line + &format!("'{piece}'"),
        }),
    }
}

impl ParamSpec {
    /// The value that a text means.
    ///
    /// # Errors
    /// If the text is of another kind; the message says what would have been understood.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite());
        Ok(match self.takes {
            ParamType::Count => Value::Count(parse_count(text)?),
            ParamType::Number => Value::Number(number(text).ok_or_else(|| format!("`{text}` is not a number"))?),
            ParamType::Positive => Value::Number(parse_positive(text)?),
            ParamType::Share => Value::Number(parse_share(text)?),
            ParamType::Rate => Value::Number(parse_rate(text)?),
            ParamType::Time => Value::Time(parse_time(text)?),
            ParamType::Sectors => Value::Sectors(parse_sectors(text)?),
            ParamType::Word(words) => match words.contains(&text) {
                true => Value::Text(text.to_owned()),
                false => return Err(format!("`{text}` is unknown; {}", did_you_mean(text, words.iter().copied()))),
            },
            ParamType::Text | ParamType::Secret => Value::Text(text.to_owned()),
            ParamType::List => Value::List(text.split(',').map(|part| part.trim().to_owned()).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static FORM: Definition = Definition {
        name: "slip",
        about: "moves",
        details: "",
        params: &[
            ParamSpec {
                name: "every",
                takes: ParamType::Count,
                unset: ParamDefault::Default("32768"),
                help: "requests",
            },
            ParamSpec { name: "increase", takes: ParamType::Sectors, unset: ParamDefault::Refused, help: "step" },
            ParamSpec { name: "seed", takes: ParamType::Secret, unset: ParamDefault::Means("chance"), help: "secret" },
            ParamSpec {
                name: "by",
                takes: ParamType::Word(&["region", "request"]),
                unset: ParamDefault::Default("request"),
                help: "",
            },
        ],
        example: "slip increase=256",
    };

    fn set(settings: &[(&str, &str)]) -> Result<Settings, String> {
        let typed: Vec<_> = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Settings::new(&FORM, &typed)
    }

    #[test]
    fn defaults_hold_where_nothing_is_set() {
        let settings = set(&[("increase", "4k")]).unwrap();
        assert_eq!((settings.count("every"), settings.sectors("increase")), (32768, Sectors(8)));
        assert_eq!((settings.optional_text("seed"), settings.text("by")), (None, "request"));
        assert_eq!(settings.typed(), "slip increase=4k");
    }

    #[test]
    fn a_secret_is_not_repeated() {
        let settings = set(&[("increase", "8"), ("seed", "hunter2")]).unwrap();
        assert_eq!(settings.typed(), "slip increase=8 seed=…");
        assert!(settings.all().all(|(_, text)| text != "hunter2"));
    }

    #[test]
    fn mistakes_are_named_with_what_was_meant() {
        for (settings, said) in [
            (&[("evry", "5")][..], "did you mean every?"),
            (&[("zzz", "5")], "there are: every increase"),
            (&[("every", "5")], "slip needs increase=LENGTH"),
            (&[("increase", "8"), ("increase", "9")], "set twice"),
            (&[("increase", "8"), ("by", "regio")], "did you mean region?"),
            (&[("increase", "8"), ("every", "often")], "every: `often` is not a whole number"),
        ] {
            let error = set(settings).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_is_typed_again_means_the_same() {
        for text in ["plain", "two words", "it's", "a|b", "", "grep -v 'x' | grep -v \"y\"", "'\"", "\"''"] {
            let line = format!("x y={}", quoted(text));
            assert_eq!(super::super::split(&line).unwrap()[0].settings[0].1, text);
        }
    }
}
