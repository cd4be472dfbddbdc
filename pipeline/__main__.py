"""Command line `python -m pipeline COMMAND`; `--help` lists the commands."""

import sys

from pipeline.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
