"""``python -m skmc``, the same as the command ``skmc``."""

import sys

from skmc._command import main

if __name__ == "__main__":
    sys.exit(main())
