"""Errors of the user or the environment, as opposed to bugs of iosonar."""


class UserError(Exception):
    """An error with its remedy, printed without a traceback."""


class UsageError(UserError):
    """An error in the command line; it has its own exit code."""
