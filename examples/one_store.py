"""One store: a scene on disk, evaluated block by block, with maps and a page."""

import sys
from pathlib import Path

import dask_uncert as du

SCENE = Path(__file__).parent / "data" / "indian_pines.zarr"


def main(folder: Path) -> None:
    """Evaluate the scene, write the output folder of a job there."""
    evaluation = du.evaluate(
        du.Input(SCENE, array="random_forest", dims="y,x,class"),
        du.Input(SCENE, array="labels", dims="y,x"),
        mask=du.Input(SCENE, array="held_out", dims="y,x"),
        classes="from_file",
        ignore=0,
        measures=["gini", "entropy"],
        maps=["entropy", "predicted", "correct"],
        maps_store=folder / "maps.zarr",
    )
    du.report(evaluation, folder / "report", maps=folder / "maps.zarr")
    print(f"accuracy {du.accuracy(evaluation):.4f}, page: {folder / 'report' / 'report.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/one_store"))
