#!/usr/bin/env bash
# The C and CUDA files of the tree are formatted by the committed .clang-format.
set -euo pipefail

version=14 # the versions of clang-format do not agree with each other
if [[ ${1:-} == --help ]]; then
    echo "usage: scripts/house/check_format.sh    exit 1 and the lines that clang-format $version would change,
                                     4 where it is not installed"
    exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

for tool in "clang-format-$version" clang-format ''; do
    [[ -n $tool ]] || { echo "check_format.sh: NOT-RUN: no clang-format $version" >&2; exit 4; }
    [[ $("$tool" --version 2>/dev/null) != *"version $version."* ]] || break
done
find src include kernels examples tests -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 "$tool" --dry-run -Werror || exit 1
