package broken

import "testing"

func TestIsNeverBuilt(t *testing.T) { undefined() }
