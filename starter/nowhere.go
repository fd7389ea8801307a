package starter

import (
	"net/http"
	"slices"
	"strings"
)

// anyPath is the pattern of what no route takes.
const anyPath = "/"

// nowhere answers a request that no route of mux takes: with a page for whoever reads
// pages, else with a problem that says what there is.
func (d *Door) nowhere(mux *http.ServeMux, methods []string, pages bool) http.Handler {
	miss := func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range methods {
			probe := &http.Request{Method: method, Host: r.Host, URL: r.URL}
			if _, pattern := mux.Handler(probe); pattern == anyPath {
				continue
			}
			if allowed = append(allowed, method); method == http.MethodGet {
				allowed = append(allowed, http.MethodHead)
			}
		}
		if len(allowed) == 0 {
			return problem(unknownPath, "no call of this address has this path; docs/api.md lists all calls, and so does /openapi.json on http.ops_addr")
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return problem(methodNotAllowed, "this path takes %s", strings.Join(allowed, ", "))
	}
	asProblem, asPage := d.open(miss), d.page(miss)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pages && slices.ContainsFunc(r.Header.Values("Accept"), func(v string) bool { return strings.Contains(v, "text/html") }) {
			asPage.ServeHTTP(w, r)
			return
		}
		asProblem.ServeHTTP(w, r)
	})
}
