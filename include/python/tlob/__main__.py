# SPDX-License-Identifier: MIT

"""python3 -m tlob -o FILE NAME[:key]...: writes a file of marks, see tlob-mark-file(3)."""

import argparse
import sys

import tlob


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tlob", description="Writes a file of marks for programs that tlobd "
                                     "measures, see tlob-mark-file(3).")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file; an absolute path is what Executable= "
                        "takes")
    parser.add_argument("names", metavar="NAME[:key]", nargs="+", help="a mark; with :key, one whose windows have keys")
    arguments = parser.parse_args()
    try:
        tlob.write(arguments.output, arguments.names)
    except (ValueError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
