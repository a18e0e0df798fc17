#!/bin/sh
# Compiler launcher of the copies that scripts/mutants.py plants faults in: mutants_compile.sh COMPILER ARGUMENTS... A fault is to be compiled and
# run, not to be fast: -O1 takes half the time of -O3, but for the reference, which takes most of a run. Kernels of instruction sets above
# $MUTANTS_LEVEL, which do not run there, become empty objects; AMX counts as AVX-512.
set -eu
object= depfile= source= previous= level=-O1
case "$*" in
*/lib/ref/*) level=-O3 ;;
esac
for word; do
    shift
    case $previous in
    -o) object=$word ;;
    -MF) depfile=$word ;;
    -c) source=$word ;;
    esac
    previous=$word
    case $word in
    -O2 | -O3) word=$level ;;
    esac
    set -- "$@" "$word"
done
case $MUTANTS_LEVEL:$object in
avx512:* | avx2:*_avx2.dir/* | *_baseline.dir/*) ;;
*gb_kernels_*_amx.dir/*.o | *gb_kernels_*.isa.c.o)
    level=${object%%.dir/*}
    level=${level##*_}
    text=
    case $source in
    */kernels.isa.c | */kernels_amx.c) text="extern const char gb_kernels_$level[]; const char gb_kernels_$level[1] = {0};" ;;
    esac
    [ -z "$depfile" ] || echo "$object:" > "$depfile"
    echo "$text" | "$1" -fPIC -x c -c -o "$object" -
    exit
    ;;
esac
exec ccache "$@"
