# A parallel build: clean, after changes, and clean again. Needs cargo and, for the sources, a network.
filesystem=ext4
size=4G
calls=yes

note() {
    echo "cargo $(cargo --version | cut -d ' ' -f 2): a clean build of hyperfine 1.18.0 with two jobs, then one after each change of a file, $seconds s"
}

prepare() {
    export CARGO_HOME=$mounted/cargo
    cargo install --quiet --locked --version 1.18.0 --root "$top/unused" hyperfine --target-dir "$top/target" 2>/dev/null
    cp -a "$mounted"/cargo/registry/src/*/hyperfine-1.18.0 "$mounted/hyperfine"
    rm -rf "$top/target" "$top/unused"
}

run() {
    export CARGO_HOME=$mounted/cargo
    cd "$mounted/hyperfine"
    cargo build --quiet --offline --locked --jobs 2
    while [ $SECONDS -lt "$seconds" ]; do
        for file in src/main.rs src/cli.rs src/parameter/mod.rs; do
            sleep 30
            touch "$file"
            cargo build --quiet --offline --locked --jobs 2
        done
    done
}
