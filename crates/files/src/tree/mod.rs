//! The tree of files that a trace needs: its snapshot, what is missing, and how to make it.
