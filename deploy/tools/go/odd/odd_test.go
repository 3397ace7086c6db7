// Package odd prints what go test takes for results.
package odd

import (
	"fmt"
	"testing"
)

func TestPrintsWithoutNewline(t *testing.T) {
	fmt.Print("without a final newline")
}

func TestPrintsWhatLooksLikeResults(t *testing.T) {
	fmt.Println("--- FAIL: TestNothing (0.00s)\n=== RUN   TestNothing\nFAIL")
}
