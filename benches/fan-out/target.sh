# For the scripts beside it.

target() { # the target directory of the workspace at $1
    cargo metadata --format-version 1 --no-deps --manifest-path "$1/Cargo.toml" |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}
