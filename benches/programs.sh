# For the scripts of the packages, which source it in their directories.

target() { # the target directory of the workspace at $1
    cargo metadata --format-version 1 --no-deps --manifest-path "$1/Cargo.toml" |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

# Builds all programs of this workspace, and sets `bin` to where they are. All, whichever is wanted: for a package by itself cargo
# builds the dependencies anew, with those of their features that it needs.
build() {
    cargo build --quiet --release --workspace --bins --examples
    bin=$(target ..)/release
}
