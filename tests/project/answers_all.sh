#!/usr/bin/env bash
# tests/project/answers.sh of all samples.
exec "$(dirname "$0")/answers.sh" all
