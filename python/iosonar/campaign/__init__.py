"""Campaigns: trees of runs over hosts and devices, with modules.

A leaf of the tree is one run. Its confs are sourced by a bash of its own (`shell.py`), which lives through its phases
(`leaf.py`, its requests in `shell_requests.py`); the hosts are driven by ssh (`hosts/`).
"""
