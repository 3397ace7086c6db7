"""Cannot be collected."""

import no_such_module
