"""The checks of judgements: files by subject. A check is a function from a study, or a side of it, to a `Check`."""
