#!/usr/bin/env bash
# git: clone of a local repository, commits, a branch and its merge, gc.
set -euo pipefail
cd "$2"
export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD GIT_PAGER=cat
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'

setup() {
    git config --global user.name tester
    git config --global user.email tester@localhost
    git config --global init.defaultBranch trunk
    git init --quiet origin
    local i j
    for i in $(seq 12); do
        mkdir -p "origin/part$((i % 4))"
        for j in $(seq 5); do
            seq "$((i * j * 10))" >"origin/part$((i % 4))/file$j"
        done
        git -C origin add .
        git -C origin commit --quiet --message "change $i"
    done
}

run() {
    git clone --quiet origin clone
    cd clone
    git switch --quiet --create topic
    seq 300 >part1/new
    git add part1/new
    git commit --quiet --message topic
    git switch --quiet trunk
    git mv part2/file1 part3/moved
    git commit --quiet --message moved
    git merge --quiet --no-edit topic
    git log --stat >../log.txt
    git gc --quiet --aggressive --prune=now
    git fsck --no-progress
}

"$1"
