package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// base32Of spells bits without the standard library's base32: five bits a
// letter, most significant first, zero bits at the end.
func base32Of(raw []byte) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	n := new(big.Int).SetBytes(raw)
	bits := len(raw) * 8
	if pad := (5 - bits%5) % 5; pad > 0 {
		n.Lsh(n, uint(pad))
		bits += pad
	}
	out := make([]byte, bits/5)
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = letters[new(big.Int).And(n, big.NewInt(31)).Int64()]
		n.Rsh(n, 5)
	}
	return string(out)
}

// The vectors are what another language must come to; they never change.
func TestSKUNumberVectors(t *testing.T) {
	for sku, want := range map[string]string{
		"CHAIR": "zikphdbn",
		"TEE":   "bjmyietw",
		"chair": "hv7lhu62",
	} {
		require.Equal(t, want, SKUNumber(sku), sku)
		sum := sha256.Sum256([]byte(sku))
		require.Equal(t, base32Of(sum[:5]), SKUNumber(sku))
	}
}

func TestIDVectors(t *testing.T) {
	tail, err := hex.DecodeString("000102030405060708090a")
	require.NoError(t, err)
	require.Equal(t, "hold_zikphdbnaaaqeayeaudaocajbi", HoldID("CHAIR", tail))
	require.Equal(t, "entry_zikphdbnaaaqeayeaudaocajbi", EntryID("CHAIR", tail))
	require.Equal(t, HoldID("CHAIR", tail), HoldID("CHAIR", append(tail, 99)), "only the first bytes of the tail count")
	require.Equal(t, "payment_x67zmfbi7te4sv3ertwta2nh7u", PaymentID("hold_zikphdbnaaaqeayeaudaocajbi", "pi_123"))
	sum := sha256.Sum256([]byte("hold_zikphdbnaaaqeayeaudaocajbi\npi_123"))
	require.Equal(t, "payment_"+base32Of(sum[:16]), PaymentID("hold_zikphdbnaaaqeayeaudaocajbi", "pi_123"))
}

func TestIDsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sku := rapid.StringMatching(`[A-Za-z0-9._-]{0,63}[A-Za-z0-9_-]`).Draw(t, "sku")
		tail := rapid.SliceOfN(rapid.Byte(), IDTailBytes, IDTailBytes).Draw(t, "tail")
		require.True(t, ValidSKU(sku))

		id := HoldID(sku, tail)
		number, err := HoldNumber(id)
		require.NoError(t, err)
		require.Equal(t, SKUNumber(sku), number)
		raw, err := HoldIDBytes(id)
		require.NoError(t, err)
		require.Equal(t, tail, raw[5:])
		require.Equal(t, id, HoldIDFromBytes(raw))

		number, err = EntryNumber(EntryID(sku, tail))
		require.NoError(t, err)
		require.Equal(t, SKUNumber(sku), number)
	})
}

// A path of the door carries any text where an id should be.
func TestWhatIsNoID(t *testing.T) {
	good := HoldID("CHAIR", make([]byte, IDTailBytes))
	body := strings.TrimPrefix(good, HoldPrefix)
	for name, id := range map[string]string{
		"empty":         "",
		"prefix only":   HoldPrefix,
		"no prefix":     body,
		"other prefix":  EntryPrefix + body,
		"twice":         HoldPrefix + good,
		"short":         good[:len(good)-1],
		"long":          good + "a",
		"capitals":      HoldPrefix + strings.ToUpper(body),
		"digit 1":       good[:len(good)-2] + "1a",
		"digit 0 in it": HoldPrefix + "0" + body[1:],
		"blank":         " " + good[1:],
		"newline":       good[:len(good)-1] + "\n",
		"padding":       good[:len(good)-1] + "=",
		"multi-byte":    HoldPrefix + body[:24] + "é",
		"zero byte":     HoldPrefix + body[:25] + "\x00",
		"middle":        HoldPrefix + body[:10] + "!" + body[11:],
		"very long":     HoldPrefix + strings.Repeat("a", 10_000),
	} {
		_, err := HoldNumber(id)
		require.ErrorIs(t, err, ErrBadID, name)
		_, err = HoldIDBytes(id)
		require.ErrorIs(t, err, ErrBadID, name)
		require.Less(t, len(err.Error()), 400, name)
	}
	_, err := EntryNumber(good)
	require.True(t, errors.Is(err, ErrBadID))
	require.False(t, ValidPaymentID(good))
	require.True(t, ValidPaymentID(PaymentID(good, "pi_123")))
}

// 26 letters hold 130 bits; an id has 128, so a last letter that sets the two
// others would be a second spelling of the same id.
func TestAnIDHasOneSpelling(t *testing.T) {
	good := HoldID("CHAIR", make([]byte, IDTailBytes))
	accepted := 0
	for _, last := range "abcdefghijklmnopqrstuvwxyz234567" {
		id := good[:len(good)-1] + string(last)
		_, numberErr := HoldNumber(id)
		raw, err := HoldIDBytes(id)
		require.Equal(t, err == nil, numberErr == nil, id)
		if err == nil {
			accepted++
			require.Equal(t, id, HoldIDFromBytes(raw))
		}
	}
	require.Equal(t, 8, accepted)
}

func TestValidSKU(t *testing.T) {
	for _, sku := range []string{"A", "TEE", "a.b_c-D9", strings.Repeat("x", 64)} {
		require.True(t, ValidSKU(sku), sku)
	}
	for _, sku := range []string{"", strings.Repeat("x", 65), "a b", "a/b", "{a}", "é", "a\n", "\x00", "a:b", "١"} {
		require.False(t, ValidSKU(sku), "%q", sku)
	}
}

func TestWorkflowIDs(t *testing.T) {
	require.Equal(t, "stock.a.b", StockWorkflowID("a.b"))
	require.Equal(t, "reconcile.a.b", ReconcileWorkflowID("a.b"))
	sku, ok := SKUOfStockWorkflow("stock.a.b")
	require.True(t, ok)
	require.Equal(t, "a.b", sku)
	for _, id := range []string{"", "stock.", "stock.a b", "stocks.a", "reconcile.a"} {
		_, ok := SKUOfStockWorkflow(id)
		require.False(t, ok, id)
	}
}
