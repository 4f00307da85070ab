"""``python -m skmc``, the same as the command ``skmc``."""

import sys

from skmc._command import main

sys.exit(main())
