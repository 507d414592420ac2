# Reads a page of Prometheus's text format (0.0.4), strictly; says what is wrong with it, and ends with 1 if something is.
# Stricter than the format asks: help and type of every family stand before its samples, a family stands in one place, no series twice,
# counters end in _total, histograms grow and end with +Inf = _count.
function wrong(why) { print "line " NR ": " why ": " $0; bad = 1 }
function base(name) { # the family of a sample
    if (kind[name]) return name
    if (sub(/_(bucket|sum|count)$/, "", name) && kind[name] == "histogram") return name
    return ""
}
BEGIN { NAME = "^[a-zA-Z_:][a-zA-Z0-9_:]*$" }
/^$/ { wrong("an empty line"); next }
/^# HELP / { if ($3 in helped) wrong("help twice"); if (NF < 4) wrong("no help"); helped[$3] = 1; now = $3; next }
/^# TYPE / {
    if ($3 != now) wrong("the type does not follow the help")
    if ($3 in kind) wrong("type twice")
    if (NF != 4 || $4 !~ /^(counter|gauge|histogram)$/) wrong("no such type")
    if ($3 !~ NAME || $3 !~ /^(textgen|process)_/) wrong("a bad name")
    if (($4 == "counter") != ($3 ~ /_total$/)) wrong("counters, and only they, end in _total")
    kind[$3] = $4
    next
}
/^#/ { wrong("neither help nor type"); next }
{
    line = $0
    if (!match(line, /^[a-zA-Z_:][a-zA-Z0-9_:]*/)) { wrong("no name"); next }
    name = substr(line, 1, RLENGTH)
    rest = substr(line, RLENGTH + 1)
    labels = ""; le = ""
    if (rest ~ /^{/) {
        rest = substr(rest, 2)
        while (match(rest, /^[a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\["\\n])*"/)) {
            one = substr(rest, 1, RLENGTH)
            if (one ~ /^le=/) { le = one; gsub(/^le="|"$/, "", le) } else labels = labels one ","
            rest = substr(rest, RLENGTH + 1)
            if (rest !~ /^,/) break
            rest = substr(rest, 2)
        }
        if (rest !~ /^} /) { wrong("bad labels"); next }
        rest = substr(rest, 2)
    }
    if (rest !~ /^ (-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?|NaN|[-+]Inf)$/) { wrong("no value"); next }
    value = substr(rest, 2) + 0
    family = base(name)
    if (!family) { wrong("a sample without a type"); next }
    if (family != now) wrong("a family in two places")
    series = name "{" labels "}" le
    if (series in seen) wrong("the series stands here twice")
    seen[series] = value
    if (kind[family] != "gauge" && !(value >= 0)) wrong("negative")
    if (kind[family] == "histogram" && name == family) wrong("a histogram without suffix")
    if (name == family "_bucket" && kind[family] == "histogram") {
        key = family "{" labels "}"
        if (le == "") wrong("a bucket without le")
        if (key in last && value < last[key]) wrong("buckets shrink")
        if (key in limit && le != "+Inf" && le + 0 <= limit[key] + 0) wrong("limits do not grow")
        last[key] = value; limit[key] = le
    }
    if (name == family "_count" && kind[family] == "histogram") {
        key = family "{" labels "}"
        if (limit[key] != "+Inf") wrong("no +Inf")
        if (last[key] != value) wrong("+Inf is not the count")
        if (!((family "_sum{" labels "}") in seen)) wrong("no sum")
    }
    n++
}
END {
    for (f in helped) if (!(f in kind)) { print "no type: " f; bad = 1 }
    if (!n) { print "no samples"; bad = 1 }
    exit bad
}
