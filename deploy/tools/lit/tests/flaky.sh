# Fails once without a marker file, and then passes.
test -e "$1" || { touch "$1" && exit 1; }
