"""Runs a program on a pseudo-terminal, as a person would who looks at it.

What the program prints goes to stdout. Each line on stdin is typed: `^C` is Ctrl-C, which the
terminal turns into a signal. Exits with the code of the program, or 128 and its signal.
"""
import os
import pty
import select
import sys

child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])

typed = [0]
while True:
    ready, _, _ = select.select([terminal, *typed], [], [])
    if terminal in ready:
        try:
            output = os.read(terminal, 65536)
        except OSError:
            break  # Linux reports EIO when the last process has closed its side.
        if not output:
            break
        os.write(1, output)
    if 0 in ready:
        line = os.read(0, 1024)
        if not line:
            typed = []
        elif line.strip() == b"^C":
            os.write(terminal, b"\x03")

_, status = os.waitpid(child, 0)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
