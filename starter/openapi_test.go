package starter

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type apiOperation struct {
	Summary     string `json:"summary"`
	Description string `json:"description"`
	OperationID string `json:"operationId"`
	Security    []any  `json:"security"`
	Parameters  []struct {
		Name string `json:"name"`
		In   string `json:"in"`
	} `json:"parameters"`
	RequestBody *struct {
		Content map[string]struct {
			Schema struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			} `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Description string `json:"description"`
		Content     map[string]struct {
			Schema struct {
				Properties map[string]any `json:"properties"`
				Required   []string       `json:"required"`
			} `json:"schema"`
		} `json:"content"`
	} `json:"responses"`
}

func apiDocument(t *testing.T, h *house) map[string]map[string]apiOperation {
	t.Helper()
	a := h.call("GET", "/openapi.json", nil, "Authorization", "")
	require.Equal(t, http.StatusOK, a.status)
	require.Equal(t, "application/json", a.header.Get("Content-Type"))
	var doc struct {
		OpenAPI string                             `json:"openapi"`
		Paths   map[string]map[string]apiOperation `json:"paths"`
	}
	a.into(t, &doc)
	require.Equal(t, "3.1.0", doc.OpenAPI)
	return doc.Paths
}

// Each route of the door is in the document, named, and with what its path holds; who
// needs a key is said; and each call of the API names its answer.
func TestTheOpenAPIDocumentHasEveryCall(t *testing.T) {
	h := newHouse(t, 0)
	paths := apiDocument(t, h)
	ids, n := map[string]bool{}, 0
	for _, r := range h.door.routes() {
		method, path, _ := strings.Cut(strings.Replace(r.pattern, "{$}", "", 1), " ")
		if method == http.MethodOptions {
			continue
		}
		op, ok := paths[path][strings.ToLower(method)]
		require.True(t, ok, r.pattern)
		n++
		require.NotEmpty(t, op.Summary, r.pattern)
		require.NotEmpty(t, op.Description, r.pattern)
		require.False(t, ids[op.OperationID], op.OperationID)
		ids[op.OperationID] = true
		for _, name := range regexp.MustCompile(`\{([a-z_]+)\}`).FindAllStringSubmatch(path, -1) {
			require.Contains(t, op.Parameters, struct {
				Name string `json:"name"`
				In   string `json:"in"`
			}{name[1], "path"}, r.pattern)
		}
		a := h.call(method, strings.NewReplacer("{", "", "}", "").Replace(path), nil, "Authorization", "")
		require.Equal(t, a.status == http.StatusUnauthorized && strings.Contains(a.body, unauthorized) && !strings.HasPrefix(path, "/codec/"), len(op.Security) > 0, r.pattern)
		if strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/v1/webhooks/twilio") && method != http.MethodDelete {
			require.Contains(t, answers, r.pattern)
		}
	}
	listed := 0
	for _, item := range paths {
		listed += len(item)
	}
	require.Equal(t, n, listed, "no call that there is not")
}

// What the document says that a body may hold is what the door knows of, and what it must
// hold is missed.
func TestTheBodiesOfTheOpenAPIDocument(t *testing.T) {
	h := newHouse(t, 1)
	hold := h.hold()
	ids := strings.NewReplacer("{sku}", h.sku, "{hold_id}", hold.HoldID, "{payment_id}", "payment_czpgdaozehjwoj2dlw24zwiu6a")
	for path, item := range apiDocument(t, h) {
		for method, op := range item {
			if op.RequestBody == nil || strings.HasPrefix(path, "/v1/webhooks/") {
				continue
			}
			s := op.RequestBody.Content["application/json"].Schema
			require.NotEmpty(t, s.Properties, path)
			body := map[string]any{"no-such-member": 1}
			for name := range s.Properties {
				body[name] = []int{} // of no member the type
			}
			pointers := map[string]string{}
			for _, e := range h.call(strings.ToUpper(method), ids.Replace(path), body, "Idempotency-Key", "k", "If-Match", "*").problem(t).Errors {
				pointers[e.Pointer] = e.Detail
			}
			require.Equal(t, "is not known here", pointers["/no-such-member"], "%s %s", method, path)
			for name := range s.Properties {
				require.NotEqual(t, "is not known here", pointers["/"+name], "%s %s: %s", method, path, name)
			}
			empty := h.call(strings.ToUpper(method), ids.Replace(path), map[string]any{"no-such-member": 1}, "Idempotency-Key", "k", "If-Match", "*").problem(t)
			for _, name := range s.Required {
				found := false
				for _, e := range empty.Errors {
					found = found || e.Pointer == "/"+name && e.Detail != "is not known here"
				}
				require.True(t, found, "%s %s does not miss %s: %v", method, path, name, empty.Errors)
			}
		}
	}
}

// A real answer has the members that the document names, and no others.
func TestTheAnswersOfTheOpenAPIDocument(t *testing.T) {
	h := newHouse(t, 2)
	h.join("+12025550101")
	paths := apiDocument(t, h)
	holds := h.call("POST", "/v1/holds", map[string]any{"sku": h.sku, "quantity": 1, "customer": "c"}, "Idempotency-Key", "k")
	require.Equal(t, http.StatusConflict, holds.status, "the line comes first")
	for _, path := range []string{
		"/v1/stock/{sku}", "/v1/stock/{sku}/policy", "/v1/stock/{sku}/statement", "/v1/stock/{sku}/why", "/v1/stock/{sku}/public",
		"/v1/stock", "/v1/stock/{sku}/ledger", "/v1/stock/{sku}/line",
	} {
		a := h.call("GET", strings.Replace(path, "{sku}", h.sku, 1), nil)
		require.Equal(t, http.StatusOK, a.status, path)
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(a.body), &got))
		s := paths[path]["get"].Responses["200"].Content["application/json"].Schema
		for name := range got {
			require.Contains(t, s.Properties, name, path)
		}
		for _, name := range s.Required {
			require.Contains(t, got, name, path)
		}
	}
}

func TestTheReferenceIsAPage(t *testing.T) {
	h := newHouse(t, 0)
	a := h.call("GET", "/docs", nil, "Authorization", "")
	require.Equal(t, http.StatusOK, a.status)
	require.Contains(t, a.header.Get("Content-Security-Policy"), "default-src 'none'")
	for _, part := range []string{"<table>", `<code>PUT /v1/stock/{sku}</code>`, `<a href="#idempotency">`, `id="idempotency"`} {
		require.Contains(t, a.body, part)
	}
	require.NotRegexp(t, `<a href="[a-z]+\.md`, a.body, "those pages are not here")
}
