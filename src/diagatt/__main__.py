"""``python -m diagatt`` is the command ``diagatt``."""

import sys


def main() -> None:
    """Run the command; an interrupt is one sentence, also while the imports are under way."""
    try:
        from diagatt.commands import cli

        cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
