# git: functions of the recipes that use it.

export GIT_AUTHOR_NAME=nobody GIT_AUTHOR_EMAIL=nobody@localhost GIT_CONFIG_GLOBAL=/dev/null
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL

version_of_git() {
    git --version | cut -d ' ' -f 3
}

# A repository with that many commits of 150 files each.
new_origin() {
    git init --quiet --initial-branch main "$mounted/origin"
    (
        cd "$mounted/origin"
        for commit in $(seq "$1"); do
            awk -v commit="$commit" 'BEGIN {
                srand(commit)
                for (i = 0; i < 150; i++) {
                    file = sprintf("%d/%d.txt", int(rand() * 20), int(rand() * 100))
                    system("mkdir -p " int(file))
                    for (line = 0; line < 20 + rand() * 200; line++) printf "%d %f\n", line, rand() > file
                    close(file)
                }
            }'
            git add --all
            git commit --quiet --message "commit $commit"
        done
    )
}

# A clone of that name, checkouts of each Nth commit, five durable commits, a gc; with those pauses in seconds.
work_once() {
    cd "$mounted"
    git clone --quiet "file://$mounted/origin" "$1"
    cd "$1"
    for commit in $(git rev-list HEAD | awk -v each="$2" 'NR % each == 0'); do
        git checkout --quiet "$commit"
        sleep "$3"
    done
    git checkout --quiet -b "work-$1"
    for i in 1 2 3 4 5; do
        find . -name "*$i.txt" -exec sed -i '1s/^/changed /' {} +
        git -c core.fsync=all commit --quiet --all --message "change $i"
        sleep "$4"
    done
    git gc --quiet --prune=now
}
