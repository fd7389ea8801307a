package starter

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// page is one page of a list.
type page struct {
	Data       []any   `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

const listReaders = 8 // things read at once for one list

// readAll reads what stands behind each item, in the order of the items. A nil
// view is left out.
func readAll[Item, View any](ctx context.Context, items []Item, read func(ctx context.Context, item Item) (*View, error)) ([]any, error) {
	views := make([]*View, len(items))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(listReaders)
	for i, item := range items {
		work.Go(func() (err error) {
			views[i], err = read(ctx, item)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, err
	}
	data := []any{}
	for _, v := range views {
		if v != nil {
			data = append(data, v)
		}
	}
	return data, nil
}

type pageQuery struct {
	limit        int
	cursor, last string
}

// readPage reads limit (1 to 200) and cursor from the query.
func readPage(r *http.Request, usual int) (pageQuery, error) {
	q := r.URL.Query()
	out := pageQuery{limit: usual, cursor: q.Get("cursor")}
	if s := q.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 200 {
			return out, badQuery("limit", "must be from 1 to 200")
		}
		out.limit = n
	}
	if len(out.cursor) > 2048 {
		return out, badQuery("cursor", "is not one of ours")
	}
	return out, nil
}

// checkQuery refuses a query that cannot be read, and parameters that nobody reads or
// that stand twice: they would be left out, and a list shown whole.
func checkQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem(validationFailed, "the query cannot be read: %s; write ; as %%3B, and %% as %%25", err)
	}
	known := queryOf(r.Pattern)
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch {
		case !slices.ContainsFunc(known, func(m member) bool { return m.name == name }):
			return problem(validationFailed, "the query parameter %.80q is not known here", name)
		case len(q[name]) > 1:
			return badQuery(name, "stands more than once; which one counts?")
		}
	}
	return nil
}

// badQuery complains of a parameter; it has no JSON pointer.
func badQuery(name, detail string) *Problem {
	return problem(validationFailed, "the query parameter %s %s", name, detail)
}

// queryInstant reads an instant from the query, the zero time when it is not
// there.
func queryInstant(r *http.Request, name string) (time.Time, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.UnixMilli() < 0 {
		return time.Time{}, badQuery(name, "must be an instant as RFC 3339 writes it, such as 2026-01-31T12:00:00Z")
	}
	return t, nil
}

// queryBool reads true or false from the query, nil when it is not there.
func queryBool(r *http.Request, name string) (*bool, error) {
	switch s := r.URL.Query().Get(name); s {
	case "":
		return nil, nil
	case "true", "false":
		is := s == "true"
		return &is, nil
	}
	return nil, badQuery(name, "must be true or false")
}

// digest is a short fixed name for a tuple of texts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Names of the lists that Temporal's visibility finds.
const (
	listOfHolds   = "holds"
	listOfRefunds = "refunds"
	listOfEvents  = "events"
)

const printLen = 22 // of a fingerprint

// encodeCursor makes the cursor of a list from Temporal's token. It begins with a
// keyed print: of a token that is not its own Temporal does not say so, and is
// asked in vain until time is up.
func (d *Door) encodeCursor(list string, token []byte) *string {
	if len(token) == 0 {
		return nil
	}
	s := d.cursorPrint(list, token) + base64.RawURLEncoding.EncodeToString(token)
	return &s
}

// decodeCursor is Temporal's token in the cursor of a list, nil for the first page.
func (d *Door) decodeCursor(list, cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	if len(cursor) > printLen {
		token, err := base64.RawURLEncoding.DecodeString(cursor[printLen:])
		if err == nil && hmac.Equal([]byte(cursor[:printLen]), []byte(d.cursorPrint(list, token))) {
			return token, nil
		}
	}
	return nil, badQuery("cursor", "is not one of ours")
}

func (d *Door) cursorPrint(list string, token []byte) string {
	return d.keys.Fingerprint("cursor:" + list + ":" + string(token))
}
