"""Command line `python -m pipeline COMMAND`; `--help` lists the commands."""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted import ends the process without a traceback

import gc

if __name__ == "__main__":
    gc.disable()  # modules stay to the end: looking for garbage in them takes a tenth of the time of a short command

from pipeline.cli.main import main
from pipeline.core.command_line import end_process

if __name__ == "__main__":
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_process(main())
