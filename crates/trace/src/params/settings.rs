//! Typed settings, checked against their definition.

use super::quantity::{parse_count, parse_positive, parse_rate, parse_sectors, parse_share, parse_time};
use super::{Definition, ParamDefault, ParamSpec, ParamType, did_you_mean};
use crate::model::units::{Nanos, Sectors};

/// A parsed value; its kind follows from [`ParamType`].
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

/// A parameter, its text as typed, and its value.
#[derive(Clone, Debug)]
pub struct Setting {
    param: &'static ParamSpec,
    /// `None` if the default applies.
    typed: Option<String>,
    value: Option<Value>,
}

/// The settings with words of their own, which are elements of the first parameter if that takes a list.
fn with_names(definition: &Definition, typed: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
    let list = definition.params.first().filter(|param| param.takes == ParamType::List);
    let (words, mut settings): (Vec<_>, Vec<_>) = typed.iter().cloned().partition(|(name, _)| name.is_empty());
    if let Some((_, word)) = words.first() {
        let malformed = || format!("`{word}` is not of the form name=value (no spaces around the `=`)");
        let name = list.ok_or_else(malformed)?.name;
        let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
        settings.push((name.to_owned(), words.join(",")));
    }
    Ok(settings)
}

/// The settings of a definition. Those not typed have their defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    definition: &'static Definition,
    settings: Vec<Setting>,
}

impl Settings {
    /// Parses the typed settings.
    ///
    /// # Errors
    /// If a name is unknown or typed twice, a value is not of its kind, or a required setting is missing.
    pub fn new(definition: &'static Definition, typed: &[(String, String)]) -> Result<Self, String> {
        let Definition { name: of, params, example, .. } = definition;
        let typed = &with_names(definition, typed)?[..];
        for (index, (name, _)) in typed.iter().enumerate() {
            let names = params.iter().map(|param| param.name);
            if !names.clone().any(|known| known == name) {
                return Err(if params.is_empty() {
                    format!("{of} takes no settings")
                } else {
                    format!("{of} has no setting `{name}`; {}", did_you_mean(name, names))
                });
            }
            if typed[..index].iter().any(|(other, _)| other == name) {
                return Err(format!("{of}: {name} is set twice"));
            }
        }
        let settings = params.iter().map(|param| {
            let typed = typed.iter().find(|(name, _)| name == param.name).map(|(_, value)| value.clone());
            let value = match (&typed, param.default) {
                (Some(text), _) => Some(param.parse(text).map_err(|why| format!("{of}: {}: {why}", param.name))?),
                (None, ParamDefault::Value(text)) => {
                    Some(param.parse(text).map_err(|why| format!("{of}: default of {}: {why}", param.name))?)
                }
                (None, ParamDefault::Described(_)) => None,
                (None, ParamDefault::Required) => {
                    return Err(format!("{of} needs {} ({}); for example: {example}", param.usage(), param.help));
                }
            };
            Ok(Setting { param, typed, value })
        });
        Ok(Self { definition, settings: settings.collect::<Result<_, String>>()? })
    }

    /// The name of the definition.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Whether the definition has a setting of that name, set or not.
    pub fn has(&self, name: &str) -> bool {
        self.definition.params.iter().any(|param| param.name == name)
    }

    /// The name and its typed settings as text that parses to the same, without defaults and with secrets hidden.
    pub fn typed(&self) -> String {
        let mut text = self.definition.name.to_owned();
        for Setting { param, typed, .. } in &self.settings {
            let Some(typed) = typed else { continue };
            let shown = if param.takes == ParamType::Secret { "…" } else { typed };
            text += &format!(" {}={}", param.name, quoted(shown));
        }
        text
    }

    /// The name and the text of each setting, as typed or its default. Secrets are hidden.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.settings.iter().filter_map(|Setting { param, typed, .. }| {
            let default = if let ParamDefault::Value(text) = param.default { Some(text) } else { None };
            let text = typed.as_deref().or(default)?;
            Some((param.name, if param.takes == ParamType::Secret { "…" } else { text }))
        })
    }

    /// A whole number.
    pub fn count(&self, name: &str) -> u64 {
        self.optional_count(name).unwrap_or_else(|| self.no_such_setting(name))
    }

    /// A whole number, if it was set.
    pub fn optional_count(&self, name: &str) -> Option<u64> {
        self.get(name).map(|value| if let Value::Count(n) = value { *n } else { self.no_such_setting(name) })
    }

    /// A number, a share, or a rate.
    pub fn number(&self, name: &str) -> f64 {
        if let Some(Value::Number(x)) = self.get(name) { *x } else { self.no_such_setting(name) }
    }

    /// A number, if it was set.
    pub fn optional_number(&self, name: &str) -> Option<f64> {
        self.get(name).map(|value| if let Value::Number(x) = value { *x } else { self.no_such_setting(name) })
    }

    /// A time.
    pub fn time(&self, name: &str) -> Nanos {
        self.optional_time(name).unwrap_or_else(|| self.no_such_setting(name))
    }

    /// A time, if it was set.
    pub fn optional_time(&self, name: &str) -> Option<Nanos> {
        self.get(name).map(|value| if let Value::Time(t) = value { *t } else { self.no_such_setting(name) })
    }

    /// A length or a position.
    pub fn sectors(&self, name: &str) -> Sectors {
        self.optional_sectors(name).unwrap_or_else(|| self.no_such_setting(name))
    }

    /// A length or a position, if it was set.
    pub fn optional_sectors(&self, name: &str) -> Option<Sectors> {
        self.get(name).map(|value| if let Value::Sectors(s) = value { *s } else { self.no_such_setting(name) })
    }

    /// A word or a text.
    pub fn text(&self, name: &str) -> &str {
        self.optional_text(name).unwrap_or_else(|| self.no_such_setting(name))
    }

    /// A word or a text, if it was set.
    pub fn optional_text(&self, name: &str) -> Option<&str> {
        self.get(name)
            .map(|value| if let Value::Text(text) = value { text.as_str() } else { self.no_such_setting(name) })
    }

    /// Several texts; empty if it was not set.
    pub fn list(&self, name: &str) -> &[String] {
        match self.get(name) {
            Some(Value::List(texts)) => texts,
            None => &[],
            _ => self.no_such_setting(name),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let setting = self.settings.iter().find(|setting| setting.param.name == name);
        setting.unwrap_or_else(|| self.no_such_setting(name)).value.as_ref()
    }

    /// A bug: the code that uses a definition reads a setting that the definition does not have. The tests build every
    /// definition.
    fn no_such_setting(&self, name: &str) -> ! {
        panic!("{} has no setting {name} of this kind", self.definition.name)
    }
}

/// The text, in quotes if it needs them.
fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '|' | '\'' | '"'));
    match plain {
        true => text.to_owned(),
        false if !text.contains('\'') => format!("'{text}'"),
        false if !text.contains('"') => format!("\"{text}\""),
        // It has both kinds of quotes: each piece is quoted with the kind that it does not contain.
        false => text.split_inclusive('\'').fold(String::new(), |line, piece| match piece.strip_suffix('\'') {
            Some("") => line + "\"'\"",
            Some(before) => line + &format!("'{before}'\"'\""),
            None => line + &format!("'{piece}'"),
        }),
    }
}

impl ParamSpec {
    /// Parses the text of a value.
    ///
    /// # Errors
    /// If the text is not a value of this kind; the message gives an example of one.
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

    static SLIP: Definition = Definition {
        name: "slip",
        about: "moves",
        details: "",
        params: &[
            ParamSpec {
                name: "every",
                takes: ParamType::Count,
                default: ParamDefault::Value("32768"),
                help: "requests",
            },
            ParamSpec { name: "increase", takes: ParamType::Sectors, default: ParamDefault::Required, help: "step" },
            ParamSpec {
                name: "seed",
                takes: ParamType::Secret,
                default: ParamDefault::Described("random"),
                help: "secret",
            },
            ParamSpec {
                name: "by",
                takes: ParamType::Word(&["region", "request"]),
                default: ParamDefault::Value("request"),
                help: "",
            },
        ],
        example: "slip increase=128k",
    };

    fn set(settings: &[(&str, &str)]) -> Result<Settings, String> {
        let typed: Vec<_> = settings.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Settings::new(&SLIP, &typed)
    }

    #[test]
    fn settings_not_typed_have_their_defaults() {
        let settings = set(&[("increase", "4k")]).unwrap();
        assert_eq!((settings.count("every"), settings.sectors("increase")), (32768, Sectors(8)));
        assert_eq!((settings.optional_text("seed"), settings.text("by")), (None, "request"));
        assert_eq!(settings.typed(), "slip increase=4k");
    }

    #[test]
    fn a_secret_is_hidden() {
        let settings = set(&[("increase", "8s"), ("seed", "hunter2")]).unwrap();
        assert_eq!(settings.typed(), "slip increase=8s seed=…");
        assert!(settings.all().all(|(_, text)| text != "hunter2"));
    }

    #[test]
    fn errors_suggest_what_was_meant() {
        for (settings, expected) in [
            (&[("evry", "5")][..], "did you mean every?"),
            (&[("zzz", "5")], "known: every increase"),
            (&[("every", "5")], "slip needs increase=LENGTH"),
            (&[("increase", "8s"), ("increase", "9s")], "set twice"),
            (&[("increase", "8s"), ("by", "regio")], "did you mean region?"),
            (&[("increase", "8s"), ("every", "often")], "every: `often` is not a whole number"),
        ] {
            let error = set(settings).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn quoted_text_parses_to_the_same_text() {
        for text in ["plain", "two words", "it's", "a|b", "", "grep -v 'x' | grep -v \"y\"", "'\"", "\"''"] {
            let line = format!("x y={}", quoted(text));
            assert_eq!(super::super::split(&line).unwrap()[0].settings[0].1, text);
        }
    }
}
