# Many small files come and go: 5 s, for tests and demos.
filesystem=ext4
size=512M
. "$(dirname "${BASH_SOURCE[0]}")/git.bash"

note() {
    echo "git $(version_of_git): a clone, checkouts of old commits, commits that are made durable, a gc"
}

prepare() { new_origin 24; }

run() { work_once copy 4 0.2 0.2; }
