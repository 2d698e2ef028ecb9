"""Starting programs, and ending exactly those."""

import os
import signal
import subprocess
import sys


class Failure(Exception):
    """Says what to do."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, log):
    """Runs a program to its end; its output goes to the log."""
    with open(log, "ab") as output:
        if subprocess.run([str(word) for word in command], stdout=output, stderr=output).returncode:
            raise Failure(f"{command[0]} failed: see {log}")


def output_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run_limited(command, env, seconds, log):
    """The standard output of a program, or a failure when it fails or takes too long.

    It gets a process group of its own: a driver may have started workers, which end with it.
    """
    with open(log, "ab") as errors:
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"took longer than {seconds} s: see {log}") from None
        finally:
            end_group(process.pid)
            process.wait()
    if process.returncode:
        raise Failure(f"exit {process.returncode}: see {log}")
    return output


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it has ended by itself
