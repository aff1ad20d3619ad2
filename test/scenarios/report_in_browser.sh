#!/usr/bin/env bash
# The HTML report in a real browser: headless Chromium, where there is one.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=test/lib/tap.sh
. test/lib/tap.sh

for browser in chromium chromium-browser google-chrome; do
    command -v "$browser" >/dev/null && break
    browser=
done
if [ -z "$browser" ]; then
    echo '1..0 # SKIP no chromium on this machine'
    exit
fi
# shellcheck source=test/lib/cluster.sh
. test/lib/cluster.sh
cluster_start || exit
work=$(mktemp -d)
at_exit 'rm -rf "$work"'
look() { # OPTION… URL
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" "$@" \
        2>/dev/null
}

sql 'CREATE EXTENSION pgbench_ext' "SELECT bench.load('pk', 20000)" \
    "SELECT bench.run('pk_update@3,pk_select', clients => 2, secs => 6, sample_interval => 0.25,
        tags => '{\"<i>\": \"&amp;\"}')" >/dev/null 2>&1
sql "SELECT bench.report(max(run_id), 'html') FROM bench.runs" >"$work/report.html"
page="file://$work/report.html"

dom=$(look --dump-dom "$page")
for plot in tps latency heat distribution waits wal processors; do
    like "$dom" "<figure[^>]*id=\"plot-$plot\"" "the browser has plot $plot"
done
is "$(grep -o '<svg' <<<"$dom" | wc -l)" "$(grep -o '<svg' "$work/report.html" | wc -l)" 'and every picture of the page'
unlike "$dom" '<i>' 'a tag stays text'

# A frame is as narrow as a phone, which a window cannot be; it tells how wide the page came out.
for width in 390 1400; do
    cat >"$work/frame.html" <<HTML
<!DOCTYPE html><iframe id="frame" src="$page" style="width: ${width}px; height: 900px; border: 0"></iframe>
<script>frame.onload = () => { document.title = 'width ' + frame.contentDocument.documentElement.scrollWidth;
    };</script>
HTML
    is "$(look --allow-file-access-from-files --virtual-time-budget=5000 --window-size=1500,1000 --dump-dom \
        "file://$work/frame.html" | grep -o 'width [0-9]*<' | tr -dc 0-9)" \
        "$width" "$width pixels wide it needs no scrolling to the side"
done
look --screenshot="$work/light.png" --window-size=1400,1800 --blink-settings=preferredColorScheme=1 "$page"
look --screenshot="$work/dark.png" --window-size=1400,1800 --blink-settings=preferredColorScheme=0 "$page"
is "$(find "$work" -name '*.png' -size +40k | wc -l)" 2 'pictures of the page are not empty'
is "$(cmp -s "$work/light.png" "$work/dark.png" && echo same)" '' 'light and dark look different'

done_testing
