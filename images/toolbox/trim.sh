#!/bin/sh
# SPDX-License-Identifier: MIT-0
# Removes from the library folder $1 what no command of the toolbox reads: 0.1 GB. `lingoss doctor --image` then runs what
# is left.
set -eu
cd "$(find "$1" -maxdepth 2 -type d -name site-packages)"
find . -depth -type d -name tests -exec rm -r {} +
# Sources, headers, types and lists of parts.
find . -type f \( -name '*.[ch]' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' -o -name '*.cdx.json' \) -delete
# Arrow: what talks to remote services, headers, other formats; libarrow_python lies there three times.
(
    cd pyarrow
    rm -r include src ./*_flight* ./*_s3* _substrait* _orc*
    for copy in libarrow_python.so libarrow_python.so.*[0-9]; do
        case $copy in *.so.*.*.*) ;; *) ln -sf libarrow_python.so.*.*.* "$copy" ;; esac
    done
)
# Example data; state-space models; the Matrix Market format.
rm statsmodels/datasets/*/*.csv statsmodels/tsa/statespace/*.so scipy/io/_fast_matrix_market/*.so
# wordfreq: dictionaries that cut Chinese into words, and the long lists of languages that lingoss does not know.
cd wordfreq/data
rm jieba_zh*
for list in large_*; do
    case $list in large_ar.* | large_de.* | large_en.* | large_es.* | large_fr.* | large_it.* | large_ja.* | large_nl.* | large_pt.* | large_zh.*) ;;
    *) rm "$list" ;; esac
done
