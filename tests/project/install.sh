#!/usr/bin/env bash
# Installs into a folder of its own, then builds samples/peak.c against what is installed: through
# pkg-config and through find_package, with the shared and with the static library; samples/peak.cpp
# where there is a C++ compiler, and samples/peak.rs where there are rustc and bindgen. All must say the same, and
# what the installed program reports. samples/plan.c plans as the program does.
set -euo pipefail
source=${ONV_SOURCE_DIR:?}
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "${ONV_BUILD_DIR:?}" --prefix "$prefix" >"$prefix/install.log"

for file in bin/onnxvram include/onnxvram/{onnxvram,analysis,planner}.h share/doc/onnxvram/LICENSE \
    share/man/man1/onnxvram.1 share/bash-completion/completions/onnxvram \
    share/zsh/site-functions/_onnxvram share/fish/vendor_completions.d/onnxvram.fish \
    share/onnxvram/{report,plan}.schema.json; do
    [ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
config=$(find "$prefix" -name onnxvram.pc)
[ -n "$config" ] || { echo "not installed: onnxvram.pc"; exit 1; }
libraries=$(dirname "$(dirname "$config")")
export PKG_CONFIG_PATH=${config%/*}

compile() {
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source/samples/peak.c" -o "$prefix/$1" "${@:2}"
}
read -ra flags < <(pkg-config --cflags --libs onnxvram)
compile pkgconfig-shared "${flags[@]}" "-Wl,-rpath,$libraries"
programs=(pkgconfig-{shared,static} cmake-{shared,static})
if command -v "${CXX:-g++}" >/dev/null; then
    "${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror "$source/samples/peak.cpp" -o "$prefix/cxx" \
        "${flags[@]}" "-Wl,-rpath,$libraries"
    programs+=(cxx)
fi
if command -v rustc >/dev/null && command -v bindgen >/dev/null; then
    cp "$source/samples/peak.rs" "$prefix"
    bindgen "$prefix/include/onnxvram/onnxvram.h" --allowlist-function 'onv_.*' --allowlist-type 'onv_.*' \
        -o "$prefix/onnxvram.rs"
    rustc --edition 2021 -D warnings "$prefix/peak.rs" -o "$prefix/rust" -L "$libraries" -l onnxvram \
        -C "link-arg=-Wl,-rpath,$libraries"
    programs+=(rust)
else
    echo "not tried: samples/peak.rs needs rustc and bindgen"
fi
read -ra flags < <(pkg-config --static --cflags --libs onnxvram)
compile pkgconfig-static "${flags[@]}" -static

version=$(pkg-config --modversion onnxvram)
mkdir "$prefix/consumer"
cat >"$prefix/consumer/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(onnxvram ${version:?} REQUIRED)
foreach(kind static shared)
  add_executable(cmake-\${kind} $source/samples/peak.c)
  target_link_libraries(cmake-\${kind} PRIVATE onnxvram::\${kind})
endforeach()
END
cmake -S "$prefix/consumer" -B "$prefix/consumer/build" "-DCMAKE_PREFIX_PATH=$prefix" \
    >"$prefix/consumer.log" || { cat "$prefix/consumer.log"; exit 1; }
cmake --build "$prefix/consumer/build" >"$prefix/consumer.log" ||
    { cat "$prefix/consumer.log"; exit 1; }
cp "$prefix"/consumer/build/cmake-{static,shared} "$prefix"

# The planner without a model, beside the program on the same intervals.
read -ra flags < <(pkg-config --cflags --libs onnxvram)
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source/samples/plan.c" -o "$prefix/plan" "${flags[@]}" "-Wl,-rpath,$libraries"
"$prefix/plan" >"$prefix/planned.csv" 2>"$prefix/planned.txt"
cut -d, -f1-4 "$prefix/planned.csv" | "$prefix/bin/onnxvram" plan - --align 256 2>"$prefix/height.txt" |
    diff "$prefix/planned.csv" -
diff <(head -n 1 "$prefix/planned.txt") "$prefix/height.txt"

cd "$source"
for program in "${programs[@]}"; do
    "$prefix/$program" samples/resnet50.onnx 256 >"$prefix/$program.txt"
    diff "$prefix/pkgconfig-shared.txt" "$prefix/$program.txt"
done
bytes=$("$prefix/bin/onnxvram" samples/resnet50.onnx --batch 256 --json |
    sed -nE 's/.*"peak": *\{[^}]*"bytes": *([0-9]+).*/\1/p')
grep -q "^peak *${bytes:?the report names no peak} bytes" "$prefix/pkgconfig-shared.txt"
