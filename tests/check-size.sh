#!/bin/bash
# One noun per file: a .c stays below 600 lines, a .h below 300.
bad=0
while read -r lines file; do
    [ "$file" = total ] && continue
    limit=600; [[ $file = *.h ]] && limit=300
    if [ "$lines" -gt "$limit" ]; then echo "check-size: $file has $lines lines (limit $limit)" >&2; bad=1; fi
done < <(git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' | xargs -r wc -l)
exit $bad
