#!/usr/bin/env bash
# Text for users is in the field's terms: no private names for known things, no turns of phrase that read as
# translated. Looks at the documents, the manual page, --help, the public headers, and every string in the sources.
set -euo pipefail
source=${ONV_SOURCE_DIR:?} build=${ONV_BUILD_DIR:?}
cd "$source"

# One per line: a pattern (Perl's, case ignored), then what to write instead.
words() {
    cat <<'END'
\bfloors\b|\bhouses?\b	layers, modules
\bcurrenc(y|ies)\b	core data types
\blevers?\b	possible savings
\bwhat would help\b	possible savings
\bwalls?\b(?![ -](time|clock))(?!, ms)	maximum batch
\bshel(f|ves)\b	skyline
\bbirths?\b|\bdeaths?\b|\bborn\b|\bdies\b	allocate, free, place
\bteach(es|ing)?\b|\btaught\b	declare, user-defined
\btrainees?\b	training model
\bnobody\b|\bsomebody\b	name the subject
\bhangs? on\b	depends on
\bof which\b	name what it is part of
\bbeside\b	next to, and, in addition to
\b(?<!there )is no (?!longer|more\b|less\b|larger\b|smaller\b|better\b|worse\b)	is not a
\b(?<!there )are no (?!longer|more\b|less\b|larger\b|smaller\b|better\b|worse\b)	are not
\bserves? (the|all|a|as|it|its|requests?)\b	say what it does
\bleast peak\b	minimum peak
\beven in bytes\b	balanced by bytes
\bresults alone\b	only outputs
\bcannot be seen\b(?! on)	say where
\bhangs on the data\b	data-dependent
\bwhose memory to work out\b	runtimes to simulate
\bhold a budget\b	enforce a budget
\bis an assumption$|pool is an assumption	is assumed
\bstands? between the passes\b	intermediate data
\bask for before\b	safety limits
\bshare out\b	number of data-parallel ranks
\bnot those that it decomposed\b	do not fuse decomposed patterns
\binput that decides shapes\b	shape-determining input
\bnext what grows\b	smallest memory increase first
\bmore of them:	N more
\bnothing can be said\b	cannot check
\blast run:	recorded by scripts/check-fresh --record, in its table
END
}

# The text to look at, a line each: place, tab, text.
texts() {
    local f
    for f in README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs/*.md docs/*/*.md man/*.1 \
        include/onnxvram/*.h web/*.html web/page/*.html; do
        awk -v f="$f" '{ print f ":" NR "\t" $0 }' "$f"
    done
    for f in "help all" "plan --help" "simulate --help" "help diff"; do
        # shellcheck disable=SC2086 # these are words
        "$build/onnxvram" $f | awk -v f="$f" '{ print f ":" NR "\t" $0 }'
    done
    grep -rnoP --include='*.c' --include='*.h' --include='*.js' '"(?:[^"\\]|\\.)*"' src web |
        grep -vP ':"[^" ]*"$' | sed 's/:"/\t"/'
}

texts | perl -e '
    my (@rows, $bad);
    open my $words, "<&=", 3 or die;
    while (<$words>) { chomp; push @rows, [split /\t/]; }
    while (my $line = <STDIN>) {
        my ($place, $text) = split /\t/, $line, 2;
        for my $row (@rows) {
            next unless $text =~ /$row->[0]/i;
            print "$place: \"$&\": write instead: $row->[1]\n    $text";
            $bad++;
        }
    }
    exit($bad ? 1 : 0);
' 3< <(words)
