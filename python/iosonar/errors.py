"""What can go wrong for a user, as opposed to what is a bug of ours."""


class UserError(Exception):
    """Something that the user can mend; its text says what it is and what to do. Printed without a traceback."""


class UsageError(UserError):
    """The same, where it is the command line that is wrong: the exit code is another."""
