"""Exit codes."""

from __future__ import annotations

import sys  # everything else is imported where an interrupt is caught

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("skmc: interrupted", file=sys.stderr, flush=True)
        return INTERRUPTED


def _run(arguments: list[str] | None) -> int:
    import importlib
    import os

    from skmc._command.arguments import parse
    from skmc._command.failure import UsageError, one_line
    from skmc._command.messages import Messages, say

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack "±"
    options = parse(arguments)
    messages = Messages(options.quiet)
    try:
        with messages.python_warnings():
            command = importlib.import_module(f"skmc._command.{options.command}")
            command.run(options, messages)
            sys.stdout.flush()
    except UsageError as error:
        say(f"error: {one_line(error)}")
        return USAGE
    except BrokenPipeError:  # the reader has stopped reading
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        say(f"error: {one_line(error)}")
        return FAILED
    return 0
