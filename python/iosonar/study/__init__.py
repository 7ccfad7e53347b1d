"""A study: files opened together, with what diagrams and pages need of them computed once."""
