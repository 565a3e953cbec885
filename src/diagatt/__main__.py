"""``python -m diagatt`` is the command ``diagatt``."""

from diagatt.commands.cli import main

if __name__ == "__main__":
    main()
