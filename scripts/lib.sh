# shellcheck shell=bash
# What the scripts here share; sourced by bash.

: "${CMAKE_BUILD_PARALLEL_LEVEL:=$(nproc)}" "${CTEST_PARALLEL_LEVEL:=$(nproc)}"
export CMAKE_BUILD_PARALLEL_LEVEL CTEST_PARALLEL_LEVEL

# What the program is built from; scripts/test adds what its checks need.
# shellcheck disable=SC2034 # not all scripts build
build_packages=(build-essential cmake ninja-build pkg-config
    protobuf-c-compiler libprotobuf-c-dev libjansson-dev libyajl-dev libminizip-dev zlib1g-dev)

fail() {
    printf '%s: FAILED: %s\n' "$0" "$*" >&2
    exit 1
}

# step NAME COMMAND...: says what runs, and stops the script when it fails.
step() {
    local name=$1
    shift
    printf '\n== %s\n' "$name"
    "$@" || fail "$name"
}

# Installs those of the named Debian packages that are missing, without asking anything.
need_packages() {
    local package missing=() as_root=()
    if ! command -v dpkg-query >/dev/null; then
        echo "not a Debian system: taking for granted what these packages hold: $*"
        return
    fi
    for package; do
        grep -qx installed < <(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null) ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
        as_root=(sudo)
    fi
    echo "installing: ${missing[*]}"
    as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
    "${as_root[@]}" update || fail "apt-get update"
    "${as_root[@]}" install --no-install-recommends "${missing[@]}" ||
        fail "cannot install: ${missing[*]}"
}

# The same for packages that some checks alone need: without them these are skipped, and say so.
want_packages() {
    (need_packages "$@") || echo "goes on without: $*"
}

# What drives the browser that looks at pages. Without it those tests are skipped, and say so.
make_web_venv() {
    local venv=build/web-venv
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import playwright' 2>/dev/null && return
    python3 -m venv "$venv" && "$venv/bin/pip" install --quiet playwright==1.65.2 ||
        echo "playwright cannot be installed: pages are not looked at in a browser"
}
