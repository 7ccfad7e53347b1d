//! What a user chooses, and what is found.

/// What a user can choose.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The name that the program gets.
    pub name: String,
    /// What the program describes, for its text.
    pub of: String,
    /// Whether reads have a stream of their own; none if the better fit decides.
    pub split: Option<bool>,
    /// A kind of arrivals; none if the better fit decides.
    pub arrivals: Option<String>,
    /// A kind of positions; none if the better fit decides.
    pub positions: Option<String>,
    /// The seed of the loads that are compared.
    pub seed: u64,
}

/// A candidate for a part of a stream.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The kind with its settings.
    pub text: String,
    /// How many parameters were fitted: more count against it.
    pub parameters: usize,
    /// Akaike's information criterion; none if the kind has no likelihood.
    pub aic: Option<f64>,
    /// A distance from the load, from 0 to 1: of times between arrivals the statistic of Kolmogorov and Smirnov, of
    /// positions the mean of the differences in the comparison.
    pub distance: f64,
    /// Of arrivals: the mean of the absolute logarithms (base 10) of the ratios of the indices of dispersion.
    pub dispersion: Option<f64>,
    /// Whether it was chosen.
    pub is_chosen: bool,
}

impl Candidate {
    /// The kind alone, without its settings.
    pub fn kind(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }
}

/// A stream that was fitted.
#[derive(Clone, Debug)]
pub struct FittedStream {
    /// The name of the stream in the program.
    pub name: String,
    /// Its requests in the load.
    pub requests: usize,
    /// Kinds of arrivals, the chosen one among them.
    pub arrivals: Vec<Candidate>,
    /// Kinds of positions, the chosen one among them.
    pub positions: Vec<Candidate>,
    pub(super) sizes: String,
    pub(super) mix: String,
    pub(super) align: u64,
    /// First sector, and the sector behind the last.
    pub(super) region: (u64, u64),
    pub(super) device: usize,
}
