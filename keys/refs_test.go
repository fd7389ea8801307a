package keys

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSealedRefs(t *testing.T) {
	refs, other := NewRefs(personSecret), NewRefs(mainSecret)
	rapid.Check(t, func(t *rapid.T) {
		ref := rapid.StringN(1, 200, -1).Draw(t, "ref")
		sealed := refs.Seal(ref)
		require.Equal(t, ref, refs.Open(sealed))
		require.Equal(t, sealed, NewRefs(personSecret).Seal(ref), "any process, any time: the gate compares")
		require.NotEqual(t, sealed, refs.Seal(ref+"x"))
		require.NotEqual(t, sealed, other.Seal(ref))
		require.Equal(t, sealed, other.Open(sealed), "another secret answers what stands there")
		if len(ref) > 3 {
			require.NotContains(t, sealed, ref)
		}
		i := rapid.IntRange(len(sealedRef), len(sealed)-2).Draw(t, "place") // the last letter may have bits to spare
		altered := sealed[:i] + string("AB"[strings.Count(sealed[i:i+1], "A")]) + sealed[i+1:]
		require.Equal(t, altered, refs.Open(altered))
	})
	require.Empty(t, refs.Seal(""), "no reference stays none")
	for _, plain := range []string{"", "pi_3NqKq2", "s1.", "s1.not base64", "s1.c2hvcnQ"} {
		require.Equal(t, plain, refs.Open(plain))
	}
	require.Equal(t, "s1.", refs.Seal("s1.pi_1")[:3])
	require.Equal(t, "s1.pi_1", refs.Open(refs.Seal("s1.pi_1")), "a reference that looks like a sealed one")
}
