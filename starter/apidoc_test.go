package starter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/config"
	"holdfast/contract"
	"holdfast/keys"
)

// apiDoc is the reference that the shop's developers read.
func apiDoc(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	return string(raw)
}

var docHeading = regexp.MustCompile("(?m)^### `((?:GET|POST|PUT|DELETE) [^`]*)`$")

// Every route has its section with a call to paste, and no section is about a
// route that has gone.
func TestEveryRouteIsInTheReference(t *testing.T) {
	doc := apiDoc(t)
	var want, got []string
	for _, r := range withStripe(t, 0).door.routes() {
		if strings.HasPrefix(r.pattern, "OPTIONS ") {
			continue // browsers ask by themselves
		}
		want = append(want, strings.Replace(r.pattern, "{$}", "", 1))
	}
	for _, m := range docHeading.FindAllStringSubmatch(doc, -1) {
		got = append(got, m[1])
	}
	require.ElementsMatch(t, want, got)
	for _, section := range strings.Split(doc, "\n### ")[1:] {
		require.Contains(t, section, "curl -sS", section)
	}
}

func TestEveryProblemIsInTheReference(t *testing.T) {
	doc := apiDoc(t)
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| [45][0-9]{2} \\|").FindAllStringSubmatch(doc, -1)
	require.Len(t, rows, len(problems))
	for code, p := range problems {
		require.Contains(t, doc, fmt.Sprintf("| `%s` | %d |", code, p.status))
	}
}

// Every member that a stock event must or may have has its row, and so has every
// reason that the gate may refuse one for.
func TestEveryStockEventIsInTheReference(t *testing.T) {
	_, section, found := strings.Cut(apiDoc(t), "## The inventory webhook")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, kind := range []string{contract.StockRestock, contract.StockCorrection, contract.StockLevel, contract.StockReturn} {
		f := newFields(map[string]any{"kind": kind})
		stockEvent(f)
		for member := range f.known {
			require.Regexp(t, "(?m)^\\|.*`"+member+"`.* \\|", section, "%s of a %s", member, kind)
		}
	}
	script, err := os.ReadFile("../redis/stock.lua")
	require.NoError(t, err)
	reasons := regexp.MustCompile(`nil, '([a-z-]+)'`).FindAllStringSubmatch(string(script), -1)
	require.NotEmpty(t, reasons)
	for _, r := range reasons {
		require.Contains(t, section, "  | `"+r[1]+"` |")
	}
	require.Equal(t, len(reasons), strings.Count(section, "\n  | `")-1, "a row of its own for each")
}

// The example is what a shop checks its own code against.
func TestTheSignatureExampleOfTheReference(t *testing.T) {
	_, doc, found := strings.Cut(apiDoc(t), "An example, with the main secret")
	require.True(t, found)
	row := func(name string) string {
		m := regexp.MustCompile(`(?m)^\| ` + name + ` \| (.*) \|$`).FindStringSubmatch(doc)
		require.NotNil(t, m, name)
		return strings.Trim(m[1], "`")
	}
	ring, err := keys.New([]byte(config.DevPersonSecret), []byte(row("`secrets.main`")),
		[]keys.LinkKey{{ID: 1, Secret: []byte(config.DevLinkSecret)}})
	require.NoError(t, err)
	hold, until := row("`hold_id`"), row("`expires_at`")
	require.Equal(t, "empty", row("`entry_id`"))
	require.Equal(t, row("`sig`"), ring.CheckoutSig(hold, "", until))

	// By hand, as the reference tells a shop to do it.
	sum := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	key := sum([]byte(row("`secrets.main`")), "8:checkout")
	require.Equal(t, row("checkout key, in hex"), hex.EncodeToString(key))
	signed := fmt.Sprintf("%d:%s0:%d:%s", len(hold), hold, len(until), until)
	require.Equal(t, row("signed bytes"), signed)
	require.Equal(t, row("`sig`"), base64.RawURLEncoding.EncodeToString(sum(key, signed)[:16]))
}
