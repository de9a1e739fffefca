"""A running scheduler: the same calls on its workers, and the same bits as on this machine.

    python examples/running_scheduler.py tcp://10.0.0.5:8786

Without an address it starts two workers here.
"""

import sys
from pathlib import Path

import dask_uncert as du

SCENE = Path(__file__).parent / "data" / "indian_pines.zarr"
INPUTS = {
    "probabilities": du.Input(SCENE, array="random_forest", dims="y,x,class"),
    "reference": du.Input(SCENE, array="labels", dims="y,x"),
    "mask": du.Input(SCENE, array="held_out", dims="y,x"),
}


def main(address: str | None) -> None:
    """Evaluate on the cluster and here; the two Evaluations are equal."""
    here = du.evaluate(**INPUTS, classes="from_file", ignore=0, measures=["gini"])
    with du.connect(address) if address else du.connect("local", workers=2, threads=1, processes=True) as client:
        there = du.evaluate(**INPUTS, classes="from_file", ignore=0, measures=["gini"])
        print(f"{len(client.scheduler_info()['workers'])} workers, the same bits: {there == here}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
