"""Run a submitted job on the cluster: as a task of its scheduler, or as a SLURM job that starts this module.

The scheduler restarts a job whose worker died. A job that lost its node or its scheduler resumes when it is submitted
again, because it calls `run`.
"""

from __future__ import annotations

import signal
import sys
import traceback
import warnings
from contextlib import suppress
from functools import partial
from typing import Any

from dask_uncert.clusters import signals
from dask_uncert.clusters.monitor import cancel_all
from dask_uncert.errors import ClusterError, InputError, OutputError, exception_text, one_line
from dask_uncert.jobs.run import FailedCasesWarning, run
from dask_uncert.jobs.submission import Submission


def drive_on_worker(output: str) -> None:
    """Run a submitted job over all workers, in a task of the scheduler."""
    from distributed import worker_client

    with worker_client() as client:
        drive(Submission.read(output), client)


def drive(submission: Submission, cluster: Any) -> None:
    """Run the job; write its progress, how it ended, and errors in the log."""

    def stop() -> None:
        from distributed import get_client

        with suppress(ValueError):  # there is no client yet
            cancel_all(get_client() if isinstance(cluster, str) else cluster)

    job, output, options = submission.job, submission.output, submission.overrides
    try:
        with submission.heartbeat(stop) as report, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FailedCasesWarning)
            run(job, cluster=cluster, out=output, fresh=submission.fresh, overrides=options, progress=report)
    except KeyboardInterrupt:  # `note_signal` has written how the job ended
        raise
    except BaseException as error:
        if submission.is_cancel_requested():
            submission.end("cancelled", "it was cancelled; submit it again to resume")
            return
        submission.log(traceback.format_exc())
        expected = isinstance(error, InputError | ClusterError | OutputError)
        submission.end("failed", one_line(error) if expected else exception_text(error, None))
        return
    failed = [str(w.message) for w in caught if issubclass(w.category, FailedCasesWarning)]
    if failed:
        submission.log("\n".join([*failed, ""]))
        submission.end("failed", failed[0])
    else:
        submission.end("done", f"the result is in {output}")


def note_signal(submission: Submission, number: int) -> None:
    """Write that a signal ended the job, as SLURM sends one before it ends a job."""
    cancelled = submission.is_cancel_requested()
    name = "it was cancelled" if cancelled else f"it was ended by {signal.Signals(number).name}"
    submission.end("cancelled" if cancelled else "failed", f"{name}; submit it again to resume")


def main(output: str) -> int:
    """Run a submitted job as a process of its own; return its exit status: 143 where SIGTERM ends it."""
    submission = Submission.read(output)
    try:
        with signals.ending_soon(partial(note_signal, submission)):
            drive(submission, submission.cluster)
    except KeyboardInterrupt as error:
        return 128 + signals.signal_number(error)
    return 0 if submission.status().status == "done" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
