#!/usr/bin/env bash
# Submits a job to a dask cluster, waits for it, and opens its page. The cluster is a scheduler and two workers on this
# machine, so that you can try it anywhere; with a cluster of your own, keep only the last part and its address.
#
#   workflows/submit.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

address=tcp://127.0.0.1:${PORT:-8786}
logs=$(mktemp -d)

# The cluster: these three commands run on three machines elsewhere. They end with this script.
dask scheduler --host 127.0.0.1 --port "${PORT:-8786}" --no-dashboard >"$logs/scheduler.log" 2>&1 &
scheduler=$! workers=()
# Workers end first: one that has lost its scheduler while it starts does not end.
trap 'kill "${workers[@]}"; wait "${workers[@]}"; kill "$scheduler"; wait; rm -rf "$logs"' EXIT
for name in one two; do
    dask worker "$address" --name "$name" --nthreads 1 --no-dashboard --local-directory "$logs" >"$logs/$name.log" 2>&1 &
    workers+=($!)
done

# Submit: prints the id, which is the output folder, and returns at once. `status` and `cancel` take the same id.
id=$(dask-uncert submit submitted_scene.yaml --cluster "$address")
dask-uncert status "$id"

# Wait until it has ended. The exit status is that of the job.
dask-uncert wait "$id"

# Open the page where there is a screen.
echo "page: $id/report.html"
if [ -n "${DISPLAY:-}" ] && command -v xdg-open >/dev/null; then xdg-open "$id/report.html"; fi
