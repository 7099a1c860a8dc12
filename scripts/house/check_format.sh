#!/usr/bin/env bash
# The C and CUDA files of the tree are formatted by the committed .clang-format.
#
# usage: scripts/house/check_format.sh
# Exit: 0, 1 and the lines that clang-format 14 would change, 2 usage, 4 where it is not installed.
set -euo pipefail

version=14 # the versions of clang-format do not agree with each other
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. scripts/lib/common.sh
parse_options "$@"
for tool in "clang-format-$version" clang-format ''; do
    [[ -n $tool ]] || die 4 "NOT-RUN: no clang-format $version"
    [[ $("$tool" --version 2>/dev/null) != *"version $version."* ]] || break
done
find src include kernels examples tests -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 "$tool" --dry-run -Werror || exit 1
