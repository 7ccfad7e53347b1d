//! Options whose value in use differs from the arguments on the command line.

/// Implements [`clap::Args`] for `$value` by parsing `$args` and converting it.
#[macro_export]
macro_rules! args_as {
    ($args:ty => $value:ty) => {
        impl clap::FromArgMatches for $value {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                let args = <$args as clap::FromArgMatches>::from_arg_matches(matches)?;
                let conflict =
                    |error| clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, std::format!("{error}\n"));
                <$value>::try_from(args).map_err(conflict)
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Args for $value {
            fn augment_args(command: clap::Command) -> clap::Command {
                <$args as clap::Args>::augment_args(command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                <$args as clap::Args>::augment_args_for_update(command)
            }
        }
    };
}
