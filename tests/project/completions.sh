#!/usr/bin/env bash
# The completions of bash, zsh and fish, each asked in its own shell; a shell that is not here is named and left out.
# shellcheck disable=SC2016 # the quoted programs are of the shells
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=$(cd "${ONV_BUILD_DIR:?}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
touch model.onnx
export PATH="$build:$PATH" HOME=$scratch XDG_CONFIG_HOME=$scratch LC_ALL=C.UTF-8 TERM=dumb

# Each prints what the shell makes of a line, whose end is the cursor.
in_bash() {
    bash --norc -c 'source "$1/completions/onnxvram.bash"; COMP_LINE=$2 COMP_POINT=${#2}; _onnxvram 2>/dev/null
        printf "%s\n" "${COMPREPLY[@]}"' _ "$source" "$1"
}
in_fish() {
    fish --no-config -c 'source $argv[1]/completions/onnxvram.fish; complete -C $argv[2]' "$source" "$1" | cut -f 1
}
# zsh completes in a terminal alone.
in_zsh() {
    timeout 20 zsh -f -c 'zmodload zsh/zpty; zpty shell zsh -f -i
        zpty -w shell "PS1=; fpath=($1/completions \$fpath); autoload -U compinit; compinit -u -D"
        zpty -w shell "print READY-\$((6 * 7))"
        zpty -r -m shell text "*READY-42*"
        zpty -w -n shell "$2"$'\''\t'\''
        zpty -r -m shell text "*$3*" && print -r -- "$text"' _ "$source" "$1" "$2"
}

# A line, and what one of its completions is.
lines=("onnxvram swe|sweep" "onnxvram --checkp|--checkpoint" "onnxvram model.onnx --runtime tor|torch" "onnxvram plans --plan-o|--plan-out"
    "onnxvram mod|model.onnx")
tried=0
for shell in bash zsh fish; do
    command -v "$shell" >/dev/null || { echo "not tried: there is no $shell"; continue; }
    tried=$((tried + 1))
    for row in "${lines[@]}"; do
        line=${row%|*} expected=${row#*|}
        # bash adds names of files itself, where the function has nothing.
        [ "$shell $line" != "bash onnxvram mod" ] || continue
        found=$("in_$shell" "$line" "$expected") || found=
        [[ $found == *"$expected"* ]] || { echo "$shell: '$line': expected $expected, found '$found'"; exit 1; }
    done
done
[ "$tried" -gt 0 ]
