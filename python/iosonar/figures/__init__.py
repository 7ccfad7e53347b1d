"""A figure as data, and what draws it. `model` is all that a new drawer has to know."""
