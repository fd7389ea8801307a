package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// policyDoor has one policy, which any PUT replaces.
type policyDoor struct {
	answer string
	puts   []map[string]any
	match  string
	status int
}

func newPolicyDoor(t *testing.T, answer string) *policyDoor {
	t.Helper()
	plain(t)
	d := &policyDoor{answer: answer, status: 200}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/stock/CHAIR/policy" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		if r.Method == http.MethodPut {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			d.puts, d.match = append(d.puts, body), r.Header.Get("If-Match")
			w.WriteHeader(d.status)
		}
		_, _ = io.WriteString(w, d.answer)
	}))
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_URL", server.URL)
	return d
}

const chairPolicy = `{"sku":"CHAIR","policy_version":3,"hold_seconds":300,"limit_per_person":2,"later":{"x":1},
	"effective":{"hold_seconds":300,"grace_seconds":60,"limit_per_person":2}}`

func TestStockPolicyIsShown(t *testing.T) {
	d := newPolicyDoor(t, chairPolicy)
	got := run(t, Services{}, "stock", "policy", "CHAIR")
	require.Zero(t, got.code, got.err)
	require.Empty(t, d.puts)
	for _, row := range []string{
		`policy_version +3`, `hold_seconds +300 +policy`, `grace_seconds +60 +configuration`, `limit_per_person +2 +policy`, `ends_at +never +configuration`,
	} {
		require.Regexp(t, `(?m)^`+row+` *$`, got.out)
	}
	got = run(t, Services{}, "stock", "policy", "CHAIR", "--json")
	require.Zero(t, got.code, got.err)
	require.JSONEq(t, chairPolicy, got.out)
}

// A change names what was read, and keeps what it does not name.
func TestStockPolicyIsChanged(t *testing.T) {
	d := newPolicyDoor(t, chairPolicy)
	got := run(t, Services{}, "stock", "policy", "CHAIR", "grace_seconds=90", "limit_per_person=", "ends_at=2027-01-31T22:00:00Z")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `"3"`, d.match)
	require.Equal(t, []map[string]any{{
		"hold_seconds": 300.0, "grace_seconds": 90.0, "limit_per_person": nil, "ends_at": "2027-01-31T22:00:00Z", "later": map[string]any{"x": 1.0},
	}}, d.puts)

	d.status = http.StatusPreconditionFailed
	d.answer = chairPolicy
	got = run(t, Services{}, "stock", "policy", "CHAIR", "grace_seconds=90")
	require.Equal(t, exitFailure, got.code)
	require.Contains(t, got.err, "412")
}

func TestStockPolicyRefusesABadChange(t *testing.T) {
	d := newPolicyDoor(t, chairPolicy)
	for arg, word := range map[string]string{
		"hold_seconds=4": "from 5 to 7200", "hold_seconds=x": "from 5 to 7200", "hold=60": "has no", "hold_seconds": "not NAME=VALUE", "ends_at=soon": "no instant",
	} {
		got := run(t, Services{}, "stock", "policy", "CHAIR", arg)
		require.Equal(t, exitUsage, got.code, arg)
		require.Contains(t, got.err, word)
	}
	got := run(t, Services{}, "stock", "policy", "CHAIR", "hold_seconds=60", "hold_seconds=70")
	require.Contains(t, got.err, "twice")
	require.Empty(t, d.puts)
}
