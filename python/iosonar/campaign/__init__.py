"""Campaigns: trees of runs over hosts and devices."""
