//! The program that made the requests of a run.

use super::field::fields;

fields! {
    /// A program.
    RunProgram {
        /// The name that its text gives it.
        name: String,
        /// One sentence about it.
        about: String,
        /// Its text; the options have the scale, the seed and the parameters.
        text: String,
        /// Its streams, in the order of their numbers in the rows.
        streams: Vec<RunStream>,
    }
}

fields! {
    /// A stream of a program.
    RunStream {
        /// The name of the stream in the program.
        name: String,
        /// The number of its instances.
        instances: u64,
        /// Whether its requests wait for no completion.
        open: bool,
    }
}
