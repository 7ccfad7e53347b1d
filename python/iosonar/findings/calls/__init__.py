"""Findings of calls to files: a file for each."""
