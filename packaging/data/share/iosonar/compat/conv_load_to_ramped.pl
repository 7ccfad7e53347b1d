#!/bin/bash
# See compat.bash.
compat=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
source "$compat/compat.bash"
run_script "${0##*/}" "$@"
