package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two children that are not up yet never get one port: the other would answer for the
// one that cannot start.
func TestAFreeAddressIsGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for range 500 {
		addr, err := freeAddr()
		require.NoError(t, err)
		require.False(t, seen[addr], addr)
		seen[addr] = true
	}
}
