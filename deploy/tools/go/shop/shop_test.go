// All that go test can say about a test.
package shop

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestPasses(t *testing.T) {
	fmt.Println("to stdout: <b>&amp;</b> ✓")
	t.Log("a note\nof two lines")
}

func TestFails(t *testing.T) {
	t.Error("names ≠ <&> ]]>")
	t.Errorf("again: %q", "one\ntwo")
}

func TestIsSkipped(t *testing.T) {
	t.Skip("no <printer> & no paper")
}

func TestHasSubtests(t *testing.T) {
	for _, name := range []string{"ünïcode ✓", "<&>\"'", "line\nbreak", "a/b", "a b", "", "has the same", "has the same"} {
		t.Run(name, func(t *testing.T) {
			if name == "a/b" {
				t.Fatal("fails with a slash")
			}
		})
	}
	t.Run("nested", func(t *testing.T) {
		t.Run("deeper", func(t *testing.T) { t.Skip("deep") })
	})
}

func TestIsParallel(t *testing.T) {
	for i := 0; i < 3; i++ {
		i := i
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			time.Sleep(10 * time.Millisecond)
			fmt.Println("from", i)
			if i == 1 {
				t.Fail()
			}
		})
	}
}

func TestCleansUpBadly(t *testing.T) {
	t.Cleanup(func() { t.Error("in its cleanup") })
}

// Fails once without a marker file, and then passes.
func TestIsFlaky(t *testing.T) {
	marker := os.Getenv("MARKER")
	if _, err := os.Stat(marker); err != nil {
		os.WriteFile(marker, nil, 0o600)
		t.Fatal("first attempt")
	}
}

func BenchmarkShop(b *testing.B) {
	for i := 0; i < b.N; i++ {
	}
}

func Example_shop() {
	fmt.Println("one")
	// Output: two
}

func FuzzShop(f *testing.F) {
	f.Add("seed ✓")
	f.Fuzz(func(t *testing.T, text string) {
		if text == "seed ✓" {
			t.Error("the seed fails")
		}
	})
}
