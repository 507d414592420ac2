#!/bin/bash
# The directions of dependency (who may include whom), and the few words that only some folders may use.
set -u
bad=0
report() { echo "check-deps: $1" >&2; bad=1; }

# may FOLDER ALLOWED-PREFIXES…: every quoted include of FOLDER starts with one of the prefixes.
may() {
    local folder=$1; shift
    [ -d "$folder" ] || return 0
    local allowed; allowed=$(printf '|%s' "$@"); allowed=${allowed:1}
    # A plug-in stands alone, with its one header beside it.
    local hits; hits=$(grep -rnE '^#include "' "$folder" --include='*.c' --include='*.h' --exclude-dir=plugin | grep -vE "#include \"($allowed)/")
    [ -z "$hits" ] || report "$folder includes what it may not:"$'\n'"$hits"
}
may common/base   common/base
may common/config common/base common/config
may common/text   common/base common/config common/text
may common/nn     common/base common/config common/nn
may proto         common/base proto
may common/net    common/base common/net proto
may common/cli    common/base common/config common/text common/net proto common/cli
may env-server    common proto env-server
may learner       common proto learner

# only WORD-REGEX ALLOWED-REGEX WHAT: the regex occurs in no other file.
only() {
    local hits; hits=$(grep -rnE "$1" common proto env-server learner --include='*.c' --include='*.h' | grep -vE "^($2)")
    [ -z "$hits" ] || report "$3:"$'\n'"$hits"
}
only '#include <zmq'          'common/net/'                                  'only common/net sees ZeroMQ'
only '#include [<"].*pb-c\.h' 'proto/'                                       'only proto/ sees protobuf-c'
only '#include <cuda|#include <cublas' 'common/nn/cuda/'                     'only common/nn/cuda sees CUDA'
only '#include "common/nn/(cpu|ref|trunk)' 'common/nn/'                         'above common/nn nobody sees a device'
only '#include <curl'         'env-server/reward/'                           'only env-server/reward sees libcurl'
only '#include <cblas'        'common/nn/cpu/'                               'only common/nn/cpu sees BLAS'
only '\b(exit|_exit)\('       '([a-z-]+/)*main\.c|common/cli/process\.c|env-server/reward/child\.c' 'exit() belongs in a main.c (_exit after a failed exec in process.c, child.c)'
only '\babort\('              'common/base/check\.c'                         'abort() belongs in TG_ASSERT'
only '\b(rand|srand|random|drand48)\(' 'nowhere'                             'rand() is not reproducible: use common/base/rng.h'
exit $bad
