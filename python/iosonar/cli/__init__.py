"""The programs `iosonar-NAME`, which `iosonar NAME` runs: one file for each."""
