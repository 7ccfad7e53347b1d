//! Kinds that a text names with their settings: `zipf exponent=1.1`. Arrivals, positions and distributions have such.

use iosonar_trace::params::{Definition, Settings, did_you_mean, split};

/// A kind of something, and what makes one of it.
pub struct Kind<B> {
    /// Name, description and settings.
    pub form: Definition,
    pub(crate) build: B,
}

/// Parses the name and the settings of one of these kinds of `what`.
pub(crate) fn parse<B>(what: &str, kinds: &[&'static Kind<B>], text: &str) -> Result<Settings, String> {
    let [phrase] = &split(text)?[..] else { return Err(format!("name one kind of {what}")) };
    let names = kinds.iter().map(|kind| kind.form.name);
    let kind = kinds.iter().find(|kind| kind.form.name == phrase.name);
    let kind = kind.ok_or_else(|| format!("unknown {what} {}; {}", phrase.name, did_you_mean(&phrase.name, names)))?;
    Settings::new(&kind.form, &phrase.settings)
}

/// What makes one with these settings.
pub(crate) fn build_of<B: Copy>(what: &str, kinds: &[&Kind<B>], settings: &Settings) -> Result<B, String> {
    let kind = kinds.iter().find(|kind| kind.form.name == settings.name());
    kind.map(|kind| kind.build).ok_or_else(|| format!("{} is no kind of {what}", settings.name()))
}
