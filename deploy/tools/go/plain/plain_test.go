package plain

import "testing"

func TestPasses(t *testing.T) {}
