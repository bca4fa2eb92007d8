# SPDX-License-Identifier: MIT
# For scripts that show something and check it: sourced, with $out naming a file for output.
checks=0
failed=0

title() { printf '\n%s\n' "$*"; }

# show COMMAND...: as one would type it; its output is shown and kept. Its status is $status.
show() {
    printf '$ %s\n' "$*"
    eval "$*" >"$out" 2>&1
    status=$?
    head -12 "$out"
}

# check WORDS TEST...
check() {
    local words=$1
    shift
    checks=$((checks + 1))
    if "$@"; then
        echo "    ok: $words"
    else
        failed=$((failed + 1))
        echo "    FAILED: $words"
    fi
}

# verdict: the last line, and the status.
verdict() {
    echo
    if [ $failed = 0 ]; then
        echo "all $checks checks passed"
    else
        echo "$failed of $checks checks failed"
        exit 1
    fi
}
