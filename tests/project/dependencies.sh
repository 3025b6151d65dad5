#!/usr/bin/env bash
# What configuration says of missing libraries: their names and one line that installs them. Without cmocka the
# program is built, and its tests are left out. And the lists of packages agree with each other.
set -euo pipefail
cd "${ONV_SOURCE_DIR:?}"
command -v ninja >/dev/null || { echo "skipped: needs ninja"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

options=()
# configure MODULE...: with pkg-config that knows these modules and no others.
configure() {
    local module folder
    rm -rf "$scratch/known" "$scratch/build"
    mkdir "$scratch/known"
    for module; do
        folder=$(pkg-config --variable=pcfiledir "$module")
        ln -s "$folder/$module.pc" "$scratch/known/"
    done
    PKG_CONFIG_LIBDIR="$scratch/known" cmake -S . -B "$scratch/build" -G Ninja -DONV_CUDA=OFF "${options[@]}" \
        >"$scratch/log" 2>&1
}
# says TEXT: as one line, since CMake breaks long ones.
says() {
    tr -s '\n ' '  ' <"$scratch/log" | grep -qF -- "$1" || { echo "'$1' is not in:"; cat "$scratch/log"; exit 1; }
}
succeeds() { "$@" || { cat "$scratch/log"; exit 1; }; }
fails() { ! "$@" || { echo "$*: no failure"; cat "$scratch/log"; exit 1; }; }

mapfile -t rows < <(sed -nE 's/^  "[A-Z_]+ ([^ ]+) ([0-9.]+) [^ ]+ ([^ ]+-dev)".*/\1 \3/p' cmake/dependencies.cmake)
[ ${#rows[@]} -ge 2 ] || { echo "no rows in cmake/dependencies.cmake"; exit 1; }
modules=("${rows[@]% *}") packages=("${rows[@]#* }")

fails configure
for module in "${modules[@]}"; do says "$module ("; done
says "sudo apt-get install ${packages[*]} "
fails configure "${modules[0]}"
says "sudo apt-get install ${packages[*]:1} "
options=(-DPKG_CONFIG_EXECUTABLE=/nonexistent)
fails configure
says "sudo apt-get install pkg-config ${packages[*]} "
options=()

succeeds configure "${modules[@]}"
says "The tests are left out, since cmocka is not installed."
says "sudo apt-get install libcmocka-dev"
ninja -C "$scratch/build" -t targets all >"$scratch/targets"
grep -q '^onnxvram: ' "$scratch/targets"
fails grep -q 'cli.cli' "$scratch/targets"

# What the scripts, the README and the container install.
for package in protobuf-c-compiler "${packages[@]}"; do
    for list in "build_packages:scripts/lib.sh" "apt-get install:README.md" "apt-get install:packaging/docker/Dockerfile"; do
        grep -A 2 -F -- "${list%%:*}" "${list#*:}" | grep -qwF -- "$package" || { echo "${list#*:} does not install $package"; exit 1; }
    done
done
