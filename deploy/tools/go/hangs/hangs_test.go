package hangs

import (
	"testing"
	"time"
)

func TestPasses(t *testing.T) {}

// Ends by -timeout, with a panic.
func TestHangs(t *testing.T) { time.Sleep(time.Minute) }
