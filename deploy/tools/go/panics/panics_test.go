package panics

import "testing"

func TestPasses(t *testing.T) {}

func TestPanics(t *testing.T) {
	t.Run("within", func(t *testing.T) { panic("no shop") })
}

func TestIsNeverRun(t *testing.T) {}
