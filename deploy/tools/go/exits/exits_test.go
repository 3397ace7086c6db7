package exits

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	fmt.Println("before all")
	m.Run()
	fmt.Print("after all, without a final newline")
	os.Exit(3)
}

func TestPassesButItsPackageFails(t *testing.T) {}
