"""``python -m skmc``, the same as the command ``skmc``."""

import sys

from skmc._command.main import main

sys.exit(main())
