# Developers who share a repository: clones, checkouts, durable commits, pushes, and a gc each, one after the other.
filesystem=ext4
size=1G
calls=yes
. "$(dirname "${BASH_SOURCE[0]}")/git.bash"

note() {
    echo "git $(version_of_git): developers clone, check out old commits, commit durably, push and gc, one after the other for $seconds s"
}

prepare() { new_origin 60; }

run() {
    developer=0
    while [ $SECONDS -lt "$seconds" ]; do
        developer=$((developer + 1))
        work_once "copy$developer" 6 12 15
        git push --quiet origin "work-copy$developer"
        rm -rf "$mounted/copy$((developer - 2))"
        sleep 30
    done
}
