package starter

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
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

func encodeCursor(raw []byte) *string {
	if len(raw) == 0 {
		return nil
	}
	s := base64.RawURLEncoding.EncodeToString(raw)
	return &s
}

func decodeCursor(s string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, badQuery("cursor", "is not one of ours")
	}
	return raw, nil
}
