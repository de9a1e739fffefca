"""``python -m dask_uncert`` is the command ``dask-uncert``."""

from dask_uncert.cli.main import main

if __name__ == "__main__":
    main()
