# Backups of a directory that changes, each followed by prune and compact, then a restore. Needs borgbackup.
filesystem=xfs
size=4G
calls=yes

note() {
    echo "Borg $(borg --version | cut -d ' ' -f 2): backups each 2 min of 300 MB in 6,000 files of which one in twenty changes, with prune and compact, and a restore at the end, $seconds s"
}

# A file of that number with fresh contents.
write_file() {
    local file=$mounted/home/$(($1 % 60))/$1
    head -c $((1000 + RANDOM * RANDOM / 11000)) /dev/urandom >"$file"
}

borg_of() {
    BORG_BASE_DIR=$mounted/borg BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes borg "$@"
}

prepare() {
    RANDOM=1
    mkdir -p "$mounted"/home/{0..59}
    for file in $(seq 6000); do write_file "$file"; done
    borg_of init --encryption none "$mounted/repository"
    borg_of create "$mounted/repository::first" "$mounted/home"
}

run() {
    RANDOM=2
    cd "$mounted"
    while [ $SECONDS -lt $((seconds - 60)) ]; do
        next=$((SECONDS + 120))
        for change in $(seq 300); do write_file $((RANDOM % 6000)); done
        borg_of create "repository::at-$SECONDS" home
        borg_of prune --keep-last 3 repository
        borg_of compact repository
        while [ $SECONDS -lt $next ]; do sleep 1; done
    done
    mkdir restored
    cd restored
    borg_of extract ../repository::first
}
