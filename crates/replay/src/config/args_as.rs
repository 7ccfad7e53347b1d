//! Options that are typed in another form than the engine uses.

/// Makes `$used` an [`clap::Args`] with the options of `$typed`, which it is converted from.
macro_rules! args_as {
    ($typed:ty => $used:ty) => {
        impl clap::FromArgMatches for $used {
            fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
                let typed = <$typed as clap::FromArgMatches>::from_arg_matches(matches)?;
                let refused =
                    |error| clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, std::format!("{error}\n"));
                <$used>::try_from(typed).map_err(refused)
            }

            fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Args for $used {
            fn augment_args(command: clap::Command) -> clap::Command {
                <$typed as clap::Args>::augment_args(command)
            }

            fn augment_args_for_update(command: clap::Command) -> clap::Command {
                <$typed as clap::Args>::augment_args_for_update(command)
            }
        }
    };
}

pub(crate) use args_as;
